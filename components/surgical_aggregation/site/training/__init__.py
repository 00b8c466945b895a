"""A site's training, independent of FLARE's tasks and messages."""
