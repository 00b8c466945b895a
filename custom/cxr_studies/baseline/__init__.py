"""Training without a federation, for comparison."""

BEST_FILE = "best.npz"
LAST_FILE = "last.npz"
ROUNDS_FILE = "rounds.jsonl"
"""Files that it writes."""
