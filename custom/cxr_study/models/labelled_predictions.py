"""What a model says of a site's own labelled images."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from cxr_study.common import progress
from cxr_study.data.labels import uncertain_labels
from cxr_study.data.labels.label_table import classes
from cxr_study.data.sites.site_data import load_images, load_labels
from cxr_study.data.sites.site_file import SiteFileError, read_site_file

if TYPE_CHECKING:
    from cxr_study.models.loaded_model import LoadedModel


@dataclass(frozen=True, eq=False)
class LabelledPredictions:
    """What a model said of a site's images, and what is true.

    Attributes:
        labels: A column per class, 1, 0 or NaN (not labelled, or not certain).
        probabilities: As the model gives them, a column per class of it.
        features: What its head weighs, float32 (images, features).
        patients: Shape (images,).
    """

    site: str
    labels: pd.DataFrame
    probabilities: pd.DataFrame
    features: np.ndarray
    patients: pd.Series


def of_site(
    model: LoadedModel, site_file: Path, split: str, *, needed: bool = True
) -> LabelledPredictions:
    """Predict a split of a site's images.

    Args:
        model: Which model.
        site_file: The site's.
        split: One of `patient_split.SPLITS`.
        needed: Whether no image in it is an error. Default True; else the tables are empty.

    Raises:
        ValueError: The site file or what it names is unusable.
    """
    site = read_site_file(site_file)
    labels = load_labels(site)
    with progress.bar(f"{site.site}: decoding images") as report:
        images = load_images(labels, model.network.image_size, progress=report)
    chosen = np.flatnonzero(images.table["split"] == split)
    if needed and not len(chosen):
        raise SiteFileError(f"{site_file}: the {split} split needs images; there is none.")
    table = images.table.iloc[chosen].reset_index(drop=True)
    said = model.outputs(images.pixels, images.rows[chosen])
    return LabelledPredictions(
        site.site,
        uncertain_labels.certain(table[list(classes(table))]),
        pd.DataFrame(said.probabilities, columns=list(model.classes)),
        said.features,
        table["patient"],
    )


def newer_splits(model: LoadedModel, folder: Path, sites: Iterable[str]) -> list[str]:
    """What is told of sites that trained a model and whose split file is newer than the model's.

    No model says with which patients it was trained, so nobody can count those that it has seen.
    """
    trained = {site for of in model.facts.trained.values() for site in of.sites}
    files = {site: read_site_file(folder / f"{site}.yaml").split for site in sites}
    written = model.file.stat().st_mtime
    return [
        f"{site}: {split} is newer than the model, which {site} trained. If it is not the split of "
        "the training, the model has seen some of these patients, and looks better than it is."
        for site, split in files.items()
        if site in trained and split.is_file() and split.stat().st_mtime > written
    ]
