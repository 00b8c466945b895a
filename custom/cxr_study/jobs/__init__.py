"""FLARE jobs: what is asked for, its settings, its folder, its recipe."""
