"""The phantom on disk, in the official layouts."""
