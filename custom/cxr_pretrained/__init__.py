"""Networks with weights that come as a package, so that no download is needed."""
