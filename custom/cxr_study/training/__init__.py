"""The network, its batches, and training without a federation."""

BEST_FILE = "best.npz"
LAST_FILE = "last.npz"
ROUNDS_FILE = "rounds.jsonl"
"""Files that a training without a federation writes."""
