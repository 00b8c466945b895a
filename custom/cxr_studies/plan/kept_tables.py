"""Tables of test images in a study's folder, kept once by their content, bit for bit."""

from __future__ import annotations

import gzip
import hashlib
import os
import tempfile
from pathlib import Path

import pandas as pd

from cxr_study.data.labels.label_table import DESCRIPTORS


def keep(table: pd.DataFrame, folder: Path) -> str:
    """Write a table into a folder, in one step, unless it is there.

    Returns:
        Its key: the SHA-256 of its content, shortened.
    """
    text = table.to_csv(index=False, lineterminator="\n").encode("utf-8")
    key = hashlib.sha256(text).hexdigest()[:16]
    path = _path(key, folder)
    if not path.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        handle, half = tempfile.mkstemp(dir=folder, prefix=f".{key}")
        with os.fdopen(handle, "wb") as file:
            file.write(gzip.compress(text, mtime=0))
        Path(half).replace(path)
    return key


def read(key: str, folder: Path) -> pd.DataFrame:
    """Read a table that `keep` wrote, bit for bit; descriptors other than the age are texts."""
    table = pd.read_csv(
        _path(key, folder),
        dtype=dict.fromkeys(DESCRIPTORS, str),
        keep_default_na=False,
        na_values=[""],
    )
    age = table["age"].astype(float)  # exact; read_csv's own numbers are not in every version
    return table.fillna(dict.fromkeys(DESCRIPTORS, "")).assign(age=age)


def _path(key: str, folder: Path) -> Path:
    return folder / f"{key}.csv.gz"
