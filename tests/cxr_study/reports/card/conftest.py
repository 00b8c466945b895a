"""Fixtures: the summary of a made-up run."""

from made_up_summary import degenerate, summary  # noqa: F401
