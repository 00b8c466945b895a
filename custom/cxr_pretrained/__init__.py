"""Networks whose weights come as a package, so that no download is needed."""
