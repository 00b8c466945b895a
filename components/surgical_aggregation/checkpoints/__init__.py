"""Global models on disk."""
