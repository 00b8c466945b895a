"""One reader per data set: from its official csv files to the label table as read.

A reader interprets nothing and drops nothing: the table contains uncertain labels, blanks and
lateral views, and the site file decides how to treat them. Csv files may be gzipped. Anything that
does not fit the format, such as a missing column, a repeated image or an unknown value, is an
InputError that names file, line and column.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from cxr_study.common.errors import InputError
from cxr_study.common.named_parts import load_object
from cxr_study.data.labels.vocabulary import (
    CHEXPERT_CLASSES,
    NIH_CLASSES,
    PADCHEST_CLASSES,
    VINDR_NAMES,
    class_name,
)
from surgical_aggregation.extras import find_part

if TYPE_CHECKING:
    import pandas as pd

    from cxr_study.data.readers.table_layout import TableLayout

__all__ = ["Dataset", "official_files"]


@dataclass(frozen=True)
class Dataset:
    """Facts about a data set that are known without reading it.

    Attributes:
        patients: Name of its numbering of patients: data sets with the same name share patients.
            "": it has no patient numbers.
        classes: Classes in the tables of its reader; None: they depend on the file.
        default_classes: Classes of a site whose site file lists none; None: all.
        identifying: Number of trailing path components that identify an image, see
            `image_files.locate`; 0: the whole path.
        labels_names: Glob patterns of the official label csv in the folder of the download.
        metadata_names: The same for the second csv; empty: there is none.
        read: Reads a label csv, and the second csv if there is one, as a label table. Default: the
            function `read` of this package's module with the name of the data set.
    """

    patients: str
    classes: tuple[str, ...] | None = None
    default_classes: tuple[str, ...] | None = None
    identifying: int = 1
    labels_names: tuple[str, ...] = ()
    metadata_names: tuple[str, ...] = ()
    read: Callable[..., pd.DataFrame] | None = None


GROUP = "cxr_study.readers"
"""Group of entry points by which packages add a `Dataset`, with its `read`."""

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
        labels_names=("mimic-cxr-2.*-chexpert.csv",),
        metadata_names=("mimic-cxr-2.*-metadata.csv",),
    ),
    "cxr-lt": Dataset(
        "mimic",
        labels_names=(
            *("train.csv", "cxr-lt-2023/train.csv"),
            *("train_labeled.csv", "cxr-lt-2024/train_labeled.csv"),
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
"""Name -> data set; "table" is a hospital's own csv."""


def dataset_of(name: str) -> Dataset:
    """Find a data set by its name.

    Args:
        name: One of `DATASETS`, the name of an entry point of `GROUP`, or `module:name`.

    Raises:
        ValueError: There is no such data set.
        InputError: `module:name` cannot be loaded, or is not a `Dataset`.
    """
    if ":" not in name:
        return find_part("dataset", name, GROUP, DATASETS, Dataset)
    found = load_object(name)
    if not isinstance(found, Dataset):
        raise InputError(f"dataset {name!r} needs to be a Dataset of {__name__}.")
    return found


def official_files(dataset: str, folder: Path) -> tuple[Path, Path | None, Path]:
    """Find the files of an unpacked official download.

    Args:
        dataset: Name of the data set.
        folder: Folder of the download.

    Returns:
        The label csv, the metadata csv (None if the data set has none), and the images folder: the
        subfolder `images` if it exists, else the folder itself.

    Raises:
        InputError: There is no such folder, it does not have exactly one matching csv, or the data
            set has no official files.
    """
    known = dataset_of(dataset)
    if not known.labels_names:
        raise InputError(f"dataset '{dataset}' has no official files; write the site file by hand.")
    if not folder.is_dir():
        raise InputError(f"needs the folder of the download; {folder} is not a folder.")
    images = folder / "images"
    return (
        _only(folder, known.labels_names, dataset),
        _only(folder, known.metadata_names, dataset) if known.metadata_names else None,
        images if images.is_dir() else folder,
    )


def _only(folder: Path, names: tuple[str, ...], dataset: str) -> Path:
    """The one file in a folder that matches one of these patterns, perhaps gzipped."""
    found = sorted(
        {path for name in names for end in ("", ".gz") for path in folder.glob(name + end)}
    )
    if len(found) == 1:
        return found[0]
    raise InputError(
        f"needs one {' or '.join(names)} (or .gz) in {folder} for dataset '{dataset}'; has "
        f"{', '.join(map(str, found)) or 'none'}. Give the folder of one official csv."
    )


def read(
    dataset: str,
    labels: Sequence[Path],
    metadata: Path | None = None,
    layout: TableLayout | None = None,
    images: Path | None = None,
) -> pd.DataFrame:
    """Read the csv files of a data set as one label table.

    Args:
        dataset: Name of the data set, see `dataset_of`.
        labels: One label csv, or several with the same classes, which are concatenated.
        metadata: The second csv, if the data set has one. For a hospital's own csv it is the index
            of images, which is not read here, see `sites.own_table.join`.
        layout: Layout of a hospital's own csv. Default: the names and words that `table` knows.
        images: Images folder, below which absolute paths of a hospital's own csv lie.

    Returns:
        The label table as read, see `label_table`.

    Raises:
        InputError: A file does not fit its format, see the module; or the files differ in their
            classes, or share an image.
    """
    import numpy as np  # here, because `DATASETS` is used without pandas
    import pandas as pd

    from cxr_study.data.labels.label_table import classes
    from cxr_study.data.readers.table import unify_ids

    known = dataset_of(dataset)
    name = f"{__name__}.{dataset.replace('-', '_')}"
    read_csv = known.read or import_module(name).read
    more: list[object] = [metadata] if known.metadata_names else []
    if layout is not None and dataset == "table":
        more = [layout, images, metadata is not None]
    tables = [read_csv(csv, *more) for csv in labels]
    for csv, table in zip(labels, tables, strict=True):
        differ = sorted(set(classes(table)) ^ set(classes(tables[0])))
        if differ:
            raise InputError(
                f"{csv}: needs the same classes as {labels[0]}; {', '.join(differ)} "
                f"{'is' if len(differ) == 1 else 'are'} in one of the two only. Give them as two "
                "sites, or remove these columns."
            )
    unified = dataset == "table" and (layout is None or layout.patients is None)
    if len(tables) == 1:
        return unify_ids(tables[0]) if unified else tables[0]
    combined: pd.DataFrame = pd.concat(tables, ignore_index=True)
    combined.attrs["notes"] = [note for table in tables for note in table.attrs["notes"]]
    names = combined["image"].str.split("/").str[-known.identifying :].str.join("/")
    again = names.duplicated()
    if again.any():
        file = np.repeat([str(csv) for csv in labels], [len(table) for table in tables])
        row = int(np.argmax(again))
        first = int(np.argmax(names == names[row]))
        raise InputError(
            f"{file[row]}: image '{names[row]}' is already in {file[first]}; leave one of the "
            "files out."
        )
    return unify_ids(combined) if unified else combined
