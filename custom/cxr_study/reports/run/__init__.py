"""The report of one run: what was learned, where, how well, and how long it took."""
