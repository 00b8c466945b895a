"""Training without a federation, for comparison."""

BEST_FILE = "best.npz"
LAST_FILE = "last.npz"
ROUNDS_FILE = "rounds.jsonl"
"""Files of a training: the best model, the last one, and a line of JSON for each round."""
