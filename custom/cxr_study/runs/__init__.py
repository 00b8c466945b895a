"""One run in FLARE's simulator, and what it leaves."""
