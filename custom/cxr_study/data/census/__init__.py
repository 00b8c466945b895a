"""The census of sites: counted, compared, and what of it may be shared."""
