"""The report of an audit: the data of sites, before training."""
