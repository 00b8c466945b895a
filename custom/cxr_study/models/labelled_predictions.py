"""What a model says of a site's own labelled images."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from cxr_study.common import progress
from cxr_study.common.errors import InputError
from cxr_study.data.labels import uncertain_labels
from cxr_study.data.labels.label_table import classes
from cxr_study.data.sites.site_data import load_images, load_labels
from cxr_study.data.sites.site_file import read_site_file
from cxr_study.data.sites.split_file import earlier, read_split

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
        raise InputError(f"{site_file}: the {split} split needs images; there is none.")
    table = images.table.iloc[chosen].reset_index(drop=True)
    said = model.outputs(images.pixels, images.rows[chosen])
    return LabelledPredictions(
        site.site,
        uncertain_labels.certain(table[list(classes(table))]),
        pd.DataFrame(said.probabilities, columns=list(model.classes)),
        said.features,
        table["patient"],
    )


def seen_in_training(
    model: LoadedModel, folder: Path, sites: Iterable[str], splits: Iterable[str]
) -> list[str]:
    """What is told of sites that trained a model, perhaps with images of these splits.

    No model says which patients trained it: counted are those that trained by a split file that the
    present one replaced. Without such a file, one that is newer than the model is named.
    """
    trained = {site for of in model.facts.trained.values() for site in of.sites}
    made = model.file.stat().st_mtime
    notes = []
    for site in filter(trained.__contains__, sites):
        read = read_site_file(folder / f"{site}.yaml")
        old = earlier(read.split)
        table = load_labels(read).table if old else pd.DataFrame()
        for file, split in itertools.product(old, splits):
            now = table[table["split"] == split]
            before = read_split(file).assignment.query("split == 'train'")
            if seen := int(now["patient"].isin(before["patient"]).sum()):
                notes.append(
                    f"{site}: {seen} of {len(now)} {split} images are of patients that {file.name} "
                    "trained with. If that was the split of the training, the model has seen them, "
                    "and looks better than it is."
                )
        if not old and read.split.is_file() and read.split.stat().st_mtime > made:
            notes.append(
                f"{site}: {read.split} is newer than the model, which {site} trained. If it is not "
                "the split of the training, the model has seen some of these patients, and looks "
                "better than it is."
            )
    return notes
