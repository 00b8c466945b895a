"""Folders of site files, each written once and named by what is in it."""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any


def key_of(what: Mapping[str, Any]) -> str:
    """SHA-256 of JSON-serialisable values, shortened to 16 digits."""
    text = json.dumps(what, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:16]


def written(folder: Path, what: Mapping[str, Any], write: Callable[[Path], object]) -> Path:
    """A folder with something in it, which appears whole or not at all.

    Args:
        folder: Where it is.
        what: What is in it, JSON-serialisable; names it.
        write: Called with an empty folder beside it, where it is not there yet. Relative paths in
            files that are written may lead out of it.

    Returns:
        The folder.
    """
    target = folder / key_of(what)
    if not target.is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        half = Path(tempfile.mkdtemp(dir=folder, prefix=".half-"))
        try:
            write(half)
            _rename(half, target)
        finally:
            shutil.rmtree(half, ignore_errors=True)
    return target


def _rename(half: Path, target: Path) -> None:
    try:
        half.rename(target)
    except OSError:
        if not target.is_dir():  # otherwise another study has just written it
            raise
