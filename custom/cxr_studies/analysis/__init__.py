"""The statistics of a study."""
