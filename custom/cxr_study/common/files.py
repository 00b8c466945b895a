"""The cache folder, and files and folders that appear whole or not at all."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import platformdirs


def cache_dir() -> Path:
    """Folder of data that can be made again: `$SURGAGG_CACHE`, else one of the user's."""
    folder = os.environ.get("SURGAGG_CACHE")
    return Path(folder) if folder else Path(platformdirs.user_cache_dir("surgical-aggregation"))


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """Give a path, for a file or a folder, which becomes `path` if the `with` block ends well."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=path.parent, prefix=f".{path.name}-") as folder:
        half = Path(folder, path.name)
        yield half
        half.replace(path)


def replace(path: Path, text: str) -> None:
    """Write a file as UTF-8 so that a reader sees the old one or the new one, never a part."""
    with whole(path) as half:
        half.write_text(text, encoding="utf-8")
