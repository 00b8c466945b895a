"""The cache: data that can be made again."""

import os
from pathlib import Path

import platformdirs


def cache_dir() -> Path:
    """The cache folder, which need not exist yet: `$SURGAGG_CACHE`, else one of the user's."""
    folder = os.environ.get("SURGAGG_CACHE")
    return Path(folder) if folder else Path(platformdirs.user_cache_dir("surgical-aggregation"))
