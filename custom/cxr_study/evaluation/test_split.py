"""A site's test split: its images with all that is known of them; its table is kept once."""

from __future__ import annotations

import gzip
import hashlib
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from cxr_study.common import progress
from cxr_study.common.errors import InputError
from cxr_study.data.labels import uncertain_labels
from cxr_study.data.labels.label_table import DESCRIPTORS
from cxr_study.data.labels.label_table import classes as class_columns
from cxr_study.data.sites.site_data import SiteLabels, load_images, load_labels
from cxr_study.data.sites.site_file import SiteFile, read_site_file


@dataclass(frozen=True, eq=False)
class TestSplit:
    """A site's test images.

    Attributes:
        table: Label table of the test images; 1, 0 or NaN (not known) for each known class.
        pixels: uint8 (m, size, size), memory-mapped.
        rows: Row of `pixels` for each row of the table, shape (n,), int64.
        labelled: Classes that the site labels itself; the labels of the others are the truth's.
        assignment: Patient and split of all the site's usable images.
        source: What it was read from.
        training: Class that the site labels -> positive and negative training images.
        unvalidated: Classes that the site labels and no image of its validation split has.
    """

    __test__ = False  # not a test case, whatever pytest makes of its name

    site: str
    table: pd.DataFrame
    pixels: np.ndarray
    rows: np.ndarray
    labelled: frozenset[str]
    assignment: pd.DataFrame
    source: SiteLabels | None = None
    unvalidated: tuple[str, ...] = ()
    training: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    def labels(self, classes: Sequence[str]) -> np.ndarray:
        """Labels of some classes, float (n, classes); NaN where nobody knows."""
        return self.table.reindex(columns=list(classes)).to_numpy(float)


def load(site_file: Path, union: Sequence[str], size: int) -> TestSplit:
    """Read a site's test split.

    Of the union those classes are kept that the site or its truth has labels of. Images have
    `size` pixels at each side.

    Raises:
        ValueError: The site file or what it names is unusable.
    """
    labels, truth = read_labels(site_file)
    with progress.bar(f"{labels.site.site}: decoding images") as report:
        images = load_images(labels, size, progress=report)
    chosen = np.flatnonzero(images.table["split"] == "test")
    test = images.table.iloc[chosen].reset_index(drop=True)
    labelled = frozenset(class_columns(test))
    validation = images.table[images.table["split"] == "validation"]
    train = images.table[images.table["split"] == "train"]
    own = uncertain_labels.certain(test[[name for name in union if name in labelled]])
    known = [own]
    if truth is not None:
        others = [name for name in union if name not in labelled and name in truth]
        known.append(truth.reindex(test["image"])[others].reset_index(drop=True).astype(float))
    table = pd.concat([test[list(DESCRIPTORS)], *known], axis=1)
    return TestSplit(
        labels.site.site,
        table[[*DESCRIPTORS, *(name for name in union if name in table)]],
        images.pixels,
        images.rows[chosen],
        labelled,
        images.table[["patient", "split"]],
        labels,
        tuple(name for name in sorted(labelled) if not (validation[name] == 1).any()),
        {n: (int((train[n] > 0.5).sum()), int((train[n] < 0.5).sum())) for n in sorted(labelled)},
    )


def read_labels(site_file: Path) -> tuple[SiteLabels, pd.DataFrame | None]:
    """A site's labels, and those kept for evaluation only, by image; None where there are none.

    Raises:
        ValueError: The site file or what it names is unusable.
    """
    site = read_site_file(site_file)
    return load_labels(site), None if site.truth is None else _read_truth(site, site.truth)


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


def _read_truth(site: SiteFile, csv: Path) -> pd.DataFrame:
    truth = pd.read_csv(csv, dtype={"image": str})
    if "image" not in truth:
        raise InputError(
            f"{site.path}: key 'truth': {csv} needs a column 'image'; has "
            f"{', '.join(map(str, truth.columns))}."
        )
    truth = truth.set_index("image")
    strange = [str(name) for name in truth if not truth[name].dropna().isin((0, 1)).all()]
    if strange:
        raise InputError(
            f"{site.path}: key 'truth': labels in {csv} need to be 0, 1 or blank; the "
            f"column '{strange[0]}' has others."
        )
    return truth
