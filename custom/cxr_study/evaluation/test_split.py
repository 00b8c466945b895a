"""A site's test images, with its labels and any complete labels that are kept for evaluation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import pandas as pd

from cxr_study.common.errors import InputError
from cxr_study.data.images.image_store import Images
from cxr_study.data.labels.csv_columns import open_csv, read_columns
from cxr_study.data.labels.label_table import DESCRIPTORS, UNCERTAIN
from cxr_study.data.labels.uncertain_labels import certain
from cxr_study.data.readers.cell_values import class_columns
from cxr_study.data.readers.table import cell_parser, image_name
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
        key `truth`, a row per image and a column per class, or None without the key. Its names of
        images and classes and its words are read as those of the labels.

    Raises:
        ValueError: The site file or a file that it names is not usable.
    """
    site = read_site_file(site_file)
    labels = load_labels(site)
    if site.truth is None:
        return labels, None
    try:
        truth = _read_truth(site, site.truth)
        tested = labels.table["image"][labels.table["split"] == "test"]
        if len(tested) and not tested.isin(truth.index).any():
            raise InputError(
                f"{site.truth}: has none of the {len(tested):,} test images, first "
                f"{tested.iloc[0]}, but {len(truth):,} others, first {truth.index[0]}."
            )
    except InputError as error:
        raise InputError(f"{site.path}: key 'truth': {error}") from None
    return labels, truth


def _read_truth(site: SiteFile, csv: Path) -> pd.DataFrame:
    """Read complete labels, 1, 0 or NaN, indexed by the name of the image."""
    try:
        file = open_csv(csv)  # as `surgagg data partition` writes it
    except InputError:
        file = open_csv(csv, encoding=site.encoding)
    names = class_columns(csv, file.header, DESCRIPTORS, site.dataset)
    columns = read_columns(file, ["image", *names])
    if not names:
        raise InputError(f"{csv}, line 1: needs a column for every class; has only image.")
    parsers = {name: cell_parser(site, name) for name in names}
    values = columns.decode_all({"image": partial(image_name, site.images), **parsers})
    columns.require_unique("image", values["image"])
    for name in names:
        wrong = values[name] == UNCERTAIN
        columns.refuse(wrong, name, "needs 1, 0 or a blank; got '{}'.", columns[name].to_numpy())
    truth = pd.DataFrame({names[name]: values[name] for name in names}, values["image"])
    return certain(truth)
