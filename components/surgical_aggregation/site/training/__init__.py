"""A site's training, without any FLARE in it."""
