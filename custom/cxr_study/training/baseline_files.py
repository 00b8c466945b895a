"""Files that a training without a federation leaves; names for those who need no FLARE."""

BEST_FILE = "best.npz"
LAST_FILE = "last.npz"
ROUNDS_FILE = "rounds.jsonl"
