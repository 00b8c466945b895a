"""FLARE jobs: templates, settings, folders, recipe."""
