"""Training without a federation, for comparison."""
