"""One run: in FLARE's simulator, or without a federation."""
