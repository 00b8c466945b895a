"""Names of what `solo_training` leaves in the folder of a training; needs no FLARE."""

BEST_FILE = "best.npz"
LAST_FILE = "last.npz"
ROUNDS_FILE = "rounds.jsonl"
