"""The cache folder, and files that are written whole or not at all."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import platformdirs


def cache_dir() -> Path:
    """Folder of data that can be made again: `$SURGAGG_CACHE`, else one of the user's."""
    folder = os.environ.get("SURGAGG_CACHE")
    return Path(folder) if folder else Path(platformdirs.user_cache_dir("surgical-aggregation"))


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """Give a path to write to, which becomes `path` if the `with` block ends well."""
    half = path.with_name(f".{path.name}.new")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        yield half
        half.replace(path)
    finally:
        half.unlink(missing_ok=True)


def replace(path: Path, text: str) -> None:
    """Write a file as UTF-8 so that a reader sees the old one or the new one, never a part."""
    temporary = path.with_name(f".{path.name}.new")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)
