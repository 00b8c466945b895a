"""A model on the labelled images of sites, and whether it was trained with them."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from cxr_study.common.errors import InputError
from cxr_study.data.sites.patient_split import earlier, read_split
from cxr_study.data.sites.site_data import load_images, load_labels
from cxr_study.data.sites.site_file import read_site_file
from cxr_study.evaluation.predictions import Predictions
from cxr_study.evaluation.test_split import to_test
from surgical_aggregation.site.contract.site import Site, Split

if TYPE_CHECKING:
    from cxr_study.models.loaded_model import LoadedModel


def of_site(
    model: LoadedModel, site: str, source: Path | Site, split: Split, *, needed: bool = True
) -> Predictions:
    """Predict a split of a site's images, with labels to test with: 1, 0 or NaN, not known.

    Args:
        model: Which model.
        site: The site's name.
        source: Its site file, or a `Site` of somebody's own.
        split: Which part of its patients.
        needed: Whether no image in it is an error. Default True; else the tables are empty.

    Raises:
        ValueError: The site file or what it names is unusable.
    """
    if isinstance(source, Site):
        return model.predict_site(source, site, split)
    images = load_images(load_labels(read_site_file(source)), model.network.image_size).of(split)
    if needed and images.table.empty:
        raise InputError(f"{source}: the {split} split needs images; there is none.")
    return model.predictions(to_test(images, sorted(images.labelled)))


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
