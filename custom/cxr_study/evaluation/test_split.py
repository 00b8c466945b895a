"""A site's test images, with its labels and any complete labels that are kept for evaluation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd

from cxr_study.common.errors import InputError
from cxr_study.data.images.image_store import Images
from cxr_study.data.labels.label_table import DESCRIPTORS
from cxr_study.data.labels.uncertain_labels import certain
from cxr_study.data.sites.site_data import SiteLabels, load_images, load_labels
from cxr_study.data.sites.site_file import SiteFile, read_site_file


def load(site_file: Path, union: Sequence[str], size: int) -> Images:
    """Read a site's test split; see `to_test`.

    Args:
        site_file: Path of <site>.yaml.
        union: Classes of the run.
        size: Side of the images, pixels.

    Raises:
        ValueError: The site file or a file that it names is not usable.
    """
    labels, truth = read_labels(site_file)
    return to_test(load_images(labels, size).of("test"), union, truth)


def to_test(images: Images, union: Sequence[str], truth: pd.DataFrame | None = None) -> Images:
    """Give images the labels of an evaluation: 1, 0 or NaN (not known; uncertain ones as well).

    Args:
        images: Of one site, with its labels.
        union: Classes of the run. Those are kept for which the site, or else `truth`, has labels.
        truth: Complete labels for evaluation, by name of the image; see `read_labels`. They are
            used for the classes that the site does not label. Default None: there are none.
    """
    table = images.table
    own = certain(table[[name for name in union if name in images.labelled]])
    known = [table[list(DESCRIPTORS)], own]
    if truth is not None:
        others = [name for name in union if name not in images.labelled and name in truth]
        known.append(truth.reindex(table["image"])[others].reset_index(drop=True).astype(float))
    joined = pd.concat(known, axis=1)
    names = [name for name in union if name in joined]
    return replace(images, table=joined[[*DESCRIPTORS, *names]])


def read_labels(site_file: Path) -> tuple[SiteLabels, pd.DataFrame | None]:
    """Read a site's labels.

    Args:
        site_file: Path of <site>.yaml.

    Returns:
        The labels for training and evaluation; and those for evaluation only, from the csv of the
        key `truth`, a row per image and a column per class, or None without the key.

    Raises:
        ValueError: The site file or a file that it names is not usable.
    """
    site = read_site_file(site_file)
    return load_labels(site), None if site.truth is None else _read_truth(site, site.truth)


def _read_truth(site: SiteFile, csv: Path) -> pd.DataFrame:
    """Read complete labels, 0, 1 or blank, indexed by the name of the image."""
    truth: pd.DataFrame = pd.read_csv(csv, dtype={"image": str})
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
