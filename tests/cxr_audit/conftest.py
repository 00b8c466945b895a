"""Fixtures: the census of a made-up site."""

from made_up_census import census, large_census, shared, site_labels  # noqa: F401
