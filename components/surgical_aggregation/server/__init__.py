"""What FLARE runs at the server."""
