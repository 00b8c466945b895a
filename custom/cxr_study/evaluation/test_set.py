"""A test set: images with all that statistics need to know of them, kept once for all runs."""

from __future__ import annotations

import gzip
import hashlib
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from cxr_study.data.labels import label_policy
from cxr_study.data.labels.label_table import DESCRIPTORS
from cxr_study.data.labels.label_table import classes as class_columns
from cxr_study.data.sites.site_data import load_images, load_labels
from cxr_study.data.sites.site_file import read_site_file


@dataclass(frozen=True, eq=False)
class TestSet:
    """Test images.

    Attributes:
        table: Label table of the images, with 1, 0 or NaN (not known) for each class.
        pixels: uint8 (m, size, size), memory-mapped.
        rows: Row of `pixels` for each row of the table, shape (n,), int64.
    """

    __test__ = False  # not a test case, whatever pytest makes of its name

    table: pd.DataFrame
    pixels: np.ndarray
    rows: np.ndarray


def load(site_file: Path, union: Sequence[str], size: int) -> TestSet:
    """Read the images of a site's test split.

    Args:
        site_file: Its path.
        union: Classes to keep, where the site labels them.
        size: Side of the images, pixels.

    Raises:
        ValueError: The site file, or what it names, is unusable.
    """
    images = load_images(load_labels(read_site_file(site_file)), size)
    chosen = np.flatnonzero(images.table["split"] == "test")
    test = images.table.iloc[chosen].reset_index(drop=True)
    held = [name for name in union if name in class_columns(test)]
    labels = label_policy.certain(test[held])
    return TestSet(test[list(DESCRIPTORS)].join(labels), images.pixels, images.rows[chosen])


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
