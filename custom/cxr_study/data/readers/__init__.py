"""One reader per data set: from its official csv files to the label table, as read.

A reader interprets nothing and drops nothing: uncertain labels, blanks and laterals are in the
table, and the site file says what becomes of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from cxr_study.data.labels.vocabulary import (
    CHEXPERT_CLASSES,
    NIH_CLASSES,
    PADCHEST_CLASSES,
    VINDR_NAMES,
    class_name,
)

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Dataset:
    """What is known about a data set without reading it.

    Attributes:
        classes: Names of the classes that its reader gives; None where the file decides.
        default_classes: The classes of a site that lists none; None for all.
        metadata: Whether a second csv is needed.
        identifying: How many trailing parts of a path tell an image from all others; 0 for the
            whole path.
        patients: Whose patient numbers these are: data sets with the same word share patients;
            "" where there are none.
        labels_names: Where the official label csv stands in the download's folder, as patterns.
        metadata_names: The same of the second csv.
    """

    patients: str
    classes: tuple[str, ...] | None = None
    default_classes: tuple[str, ...] | None = None
    metadata: bool = False
    identifying: int = 1
    labels_names: tuple[str, ...] = ()
    metadata_names: tuple[str, ...] = ()


DATASETS = {
    "nih": Dataset("nih", classes=NIH_CLASSES, labels_names=("Data_Entry_2017*.csv",)),
    "chexpert": Dataset(
        "chexpert",
        classes=CHEXPERT_CLASSES,
        identifying=3,  # patient, study and view
        labels_names=("train.csv", "CheXpert-v1.0*/train.csv"),
    ),
    "mimic": Dataset(
        "mimic",
        classes=CHEXPERT_CLASSES,
        metadata=True,
        labels_names=("mimic-cxr-2.*-chexpert.csv",),
        metadata_names=("mimic-cxr-2.*-metadata.csv",),
    ),
    "cxr-lt": Dataset(
        "mimic",
        labels_names=(
            "train.csv",
            "train_labeled.csv",
            "cxr-lt-2023/train.csv",
            "cxr-lt-2024/train_labeled.csv",
        ),
    ),
    "vindr": Dataset(
        "",
        classes=tuple(class_name(name, "vindr") for name in VINDR_NAMES),
        labels_names=("image_labels_train.csv", "annotations/image_labels_train.csv"),
    ),
    "padchest": Dataset(
        "padchest",
        default_classes=PADCHEST_CLASSES,
        labels_names=("PADCHEST_chest_x_ray_images_labels_160K*.csv",),
    ),
    "table": Dataset("table", identifying=0),
}


def read(dataset: str, labels: Sequence[Path], metadata: Path | None = None) -> pd.DataFrame:
    """Read the csv files of a data set as one label table.

    Args:
        dataset: A key of `DATASETS`.
        labels: One label csv, or several with the same classes.
        metadata: The second csv, where the data set has one.

    Returns:
        The label table as read (see `cxr_study.data.labels.label_table`), file after file.

    Raises:
        TableError: A csv does not hold what the data set promises, the files do not have the same
            classes, or an image stands in two of them.
    """
    import numpy as np  # those who only look into `DATASETS` need no pandas
    import pandas as pd

    from cxr_study.data.labels.csv_columns import TableError
    from cxr_study.data.labels.label_table import classes

    known = DATASETS[dataset]
    reader = _reader(dataset)
    tables = [reader(csv, metadata) if known.metadata else reader(csv) for csv in labels]
    for csv, part in zip(labels, tables, strict=True):
        differ = sorted(set(classes(part)) ^ set(classes(tables[0])))
        if differ:
            raise TableError(
                f"{csv}: needs the same classes as {labels[0]}; {', '.join(differ)} "
                f"{'is' if len(differ) == 1 else 'are'} in one of the two only. Give them as two "
                "sites, or remove these columns."
            )
    if len(tables) == 1:
        return tables[0]
    whole = pd.concat(tables, ignore_index=True)
    images = whole["image"].str.split("/").str[-known.identifying :].str.join("/")
    again = images.duplicated()
    if again.any():
        file = np.repeat([str(csv) for csv in labels], [len(part) for part in tables])
        second = int(np.argmax(again))
        first = int(np.argmax(images == images[second]))
        raise TableError(
            f"{file[second]}: image '{images[second]}' stands in {file[first]} already; leave one "
            "of the files out."
        )
    return whole


def _reader(dataset: str) -> Callable[..., pd.DataFrame]:
    """read(labels) of a data set's module, or read(labels, metadata) -> label table."""
    module = import_module(f"{__name__}.{dataset.replace('-', '_')}")
    return module.read
