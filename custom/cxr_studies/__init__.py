"""The studies of the papers, run again: scenarios, methods, strategies, seeds; statistics."""
