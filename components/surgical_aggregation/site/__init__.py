"""What FLARE runs at a site."""
