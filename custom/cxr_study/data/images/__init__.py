"""Images: found, decoded once, kept."""
