"""A site's test images, with all that is known of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd

from cxr_study.common.errors import InputError
from cxr_study.data.images.image_store import Images
from cxr_study.data.labels.label_table import DESCRIPTORS, certain
from cxr_study.data.sites.site_data import SiteLabels, load_images, load_labels
from cxr_study.data.sites.site_file import SiteFile, read_site_file


def load(site_file: Path, union: Sequence[str], size: int) -> Images:
    """Read a site's test split; see `to_test`. Images have `size` pixels at each side.

    Raises:
        ValueError: The site file or what it names is unusable.
    """
    labels, truth = read_labels(site_file)
    return to_test(load_images(labels, size).of("test"), union, truth)


def to_test(images: Images, union: Sequence[str], truth: pd.DataFrame | None = None) -> Images:
    """Images with labels to test with: 1, 0 or NaN, not known.

    Of the union those classes are kept that the site, or else its truth, has labels of.
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
    """A site's labels, and those kept for evaluation only, by image; None where there are none.

    Raises:
        ValueError: The site file or what it names is unusable.
    """
    site = read_site_file(site_file)
    return load_labels(site), None if site.truth is None else _read_truth(site, site.truth)


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
