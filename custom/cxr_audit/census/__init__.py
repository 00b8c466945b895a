"""The census of sites: counts, comparisons, and the part that may be shared."""
