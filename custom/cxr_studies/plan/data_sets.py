"""The data sets of a study: a site file of each, whole, and a digest of what is in it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from cxr_studies.partition.partition import write_copy, write_nih_pool
from cxr_studies.plan.data_file import DATA_SETS, StudyData
from cxr_study.data.labels.label_table import DESCRIPTORS, apply_policy
from cxr_study.data.labels.label_table import classes as class_columns
from cxr_study.data.readers import official_files
from cxr_study.data.sites.site_data import find_files, labelled_classes, read_labels, select_views
from cxr_study.data.sites.site_file import SiteFile, read_site_file, write_site_file


@dataclass(frozen=True, eq=False)
class DataSet:
    """A data set.

    Attributes:
        site: Site file of all of it, named as the data set is; its split is not used.
        table: Label table as read, of the views that the site file says.
        digest: SHA-256 of labels as decided, patients and sizes of the image files, shortened.
    """

    site: SiteFile
    table: pd.DataFrame
    classes: tuple[str, ...]
    digest: str


def data_sets(data: StudyData, names: Iterable[str], folder: Path) -> dict[str, DataSet]:
    """Find data sets, or draw them; those that `data` does not have are left out.

    Raises:
        ValueError: One is not where it should be, or not what it should be.
    """
    if data.images is not None:
        from cxr_phantom.demo_data import demo_data_sets  # real data need no phantom

        root = demo_data_sets(data.images)
        return {name: _read(root / f"{name}.yaml") for name in names}
    return {
        name: _read(_site_file(name, data.sources[name], folder / name))
        for name in names
        if name in data.sources
    }


def given_sites(data: StudyData, seed: int) -> dict[str, DataSet]:
    """Sites with splits of their own; of the phantom, drawn anew for every seed.

    Raises:
        ValueError: A site file, or what it names, is unusable.
    """
    if data.images is None:
        return {name: _read(path) for name, path in data.sources.items()}
    from cxr_phantom.demo_data import demo_study

    folder = demo_study(seed, data.images)
    return {name: _read(folder / f"{name}.yaml") for name in data.site_names}


def _site_file(name: str, source: Path, folder: Path) -> Path:
    """Write a site file of the data set's name for a download, or for another site file."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.yaml"
    if source.suffix == ".yaml":
        site = read_site_file(source)
        classes = labelled_classes(site, class_columns(read_labels(site)))
        write_copy(site, path, classes, folder / "split.csv")
    elif name == "nih":
        write_nih_pool(source, folder)
    else:
        labels, metadata, images = official_files(DATA_SETS[name], source)
        write_site_file(
            path,
            dataset=DATA_SETS[name],
            labels=labels,
            metadata=metadata,
            images=images,
            split=folder / "split.csv",
        )
    return path


def _read(path: Path) -> DataSet:
    site = read_site_file(path)
    table = select_views(site, read_labels(site))
    classes = labelled_classes(site, class_columns(table))
    return DataSet(site, table, classes, _digest(site, table[[*DESCRIPTORS, *classes]]))


def _digest(site: SiteFile, table: pd.DataFrame) -> str:
    decided = apply_policy(table, site.policy)
    files = find_files(site, table["image"])
    sizes = np.array([-1 if file is None else file.stat().st_size for file in files], np.int64)
    sha = hashlib.sha256(",".join(decided.columns).encode("utf-8"))
    sha.update(pd.util.hash_pandas_object(decided, index=False).to_numpy().tobytes())
    sha.update(sizes.tobytes())
    return sha.hexdigest()[:16]
