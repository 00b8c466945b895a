"""Images: find their files, decode them once, and cache the pixels."""
