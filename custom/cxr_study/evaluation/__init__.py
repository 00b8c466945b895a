"""How well models do on test splits: scores, intervals, tests."""
