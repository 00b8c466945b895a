"""FLARE jobs: methods, settings and presets, the job folder, and the recipe that builds it."""
