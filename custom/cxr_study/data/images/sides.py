"""How large the square images that are kept may be."""

SIDES = range(1, 2049)
"""Sides in pixels. A job names one, and the site's disk and memory pay for it."""
