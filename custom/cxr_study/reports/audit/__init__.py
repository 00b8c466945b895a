"""The report of an audit: what the data of sites are, before anyone trains on them."""
