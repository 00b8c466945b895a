"""The statistics of a study: intervals, tests, corrections for many tests, calibration."""
