"""Components that FLARE runs at a site."""
