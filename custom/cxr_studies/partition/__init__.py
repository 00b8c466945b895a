"""Cut one data set into sites with different patients and classes."""
