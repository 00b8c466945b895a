"""The studies of the papers, run again: settings, methods, strategies, seeds; statistics."""
