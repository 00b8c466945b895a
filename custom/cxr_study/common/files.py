"""The cache folder, and atomic writes of files and folders."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory


def cache_dir() -> Path:
    """Folder for data that can be recomputed; it may not exist yet.

    The environment variable `SURGAGG_CACHE` names it. Default: the user's cache folder of the
    operating system, such as ~/.cache/surgical-aggregation on Linux.
    """
    import platformdirs  # here, for every command imports this module

    folder = os.environ.get("SURGAGG_CACHE")
    return Path(folder) if folder else Path(platformdirs.user_cache_dir("surgical-aggregation"))


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """Write a file or a folder atomically: it appears complete, or not at all.

    Parent folders are created. The temporary path is on the same file system, next to `path`.

    Args:
        path: What to write. An existing file is replaced; a folder must not exist yet, or be empty.

    Yields:
        A temporary path to write to. It is renamed to `path` at the end of the `with` block, and
        removed if the block raises.

    Example:
        >>> with atomic_path(Path("notes.txt")) as unfinished:
        ...     _ = unfinished.write_text("done")
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=path.parent, prefix=f".{path.name}-") as folder:
        unfinished = Path(folder, path.name)
        yield unfinished
        unfinished.replace(path)


def atomic_write(path: Path, text: str) -> None:
    """Write a text file in UTF-8; readers see the old content or the new one, never a part."""
    with atomic_path(path) as unfinished:
        unfinished.write_text(text, encoding="utf-8")
