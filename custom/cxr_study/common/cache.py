"""Where this study keeps what can be made again."""

import os
from pathlib import Path

import platformdirs


def cache_dir() -> Path:
    """Return the cache folder; it need not exist yet.

    Returns:
        `$SURGAGG_CACHE` where it is set, else the user's cache folder for this program.
    """
    folder = os.environ.get("SURGAGG_CACHE")
    return Path(folder) if folder else Path(platformdirs.user_cache_dir("surgical-aggregation"))
