"""One reader per data set: from its official csv files to the label table, as read.

A reader interprets nothing and drops nothing: uncertain labels, blanks and laterals are in the
table, and the site file says what becomes of them. Csv files may be gzipped. Whatever does not fit
the format, such as a missing column, an image that stands twice or an unknown value, is a
InputError that names file, line and column.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from cxr_study.common.errors import InputError
from cxr_study.common.named_parts import by_path
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
    """What is known about a data set without reading it.

    Attributes:
        patients: Data sets with the same word share patient numbers; "" where there are none.
        classes: Classes that its reader gives; None where the file decides.
        default_classes: The classes of a site that lists none; None for all.
        identifying: How many trailing parts of a path identify an image; 0 for the whole path.
        labels_names: Patterns of the official label csv in the download's folder.
        metadata_names: The same of the second csv; empty where there is none.
        read: Reads a label csv, and the second csv where there is one, as a label table. Default:
            the function of this room's module that is called as the data set.
    """

    patients: str
    classes: tuple[str, ...] | None = None
    default_classes: tuple[str, ...] | None = None
    identifying: int = 1
    labels_names: tuple[str, ...] = ()
    metadata_names: tuple[str, ...] = ()
    read: Callable[..., pd.DataFrame] | None = None


GROUP = "cxr_study.readers"
"""Of entry points: packages that offer a `Dataset`, with its `read`, by its name."""

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


def dataset_of(name: str) -> Dataset:
    """A data set by its name: ours, a package's (see `GROUP`), or `module:name` of a `Dataset`.

    Raises:
        ValueError: There is none of this name.
    """
    found = by_path(name) if ":" in name else find_part("dataset", name, GROUP, DATASETS)
    if not isinstance(found, Dataset):
        raise InputError(f"dataset {name!r} needs to be a Dataset of {__name__}.")
    return found


def official_files(dataset: str, folder: Path) -> tuple[Path, Path | None, Path]:
    """Find the label csv, the metadata csv and the images of an unpacked official download.

    Returns:
        The label csv, the metadata csv (None where the data set has none) and the images folder:
        `images` where there is one, else the folder itself.

    Raises:
        InputError: There is no such folder, nothing or more than one csv in it fits, or the
            data set has no official files.
    """
    known = dataset_of(dataset)
    if not known.labels_names:
        raise InputError(f"dataset '{dataset}' has no official files; write the site file by hand.")
    if not folder.is_dir():
        raise InputError(f"needs the folder of the download; {folder} is none.")
    images = folder / "images"
    return (
        _only(folder, known.labels_names, dataset),
        _only(folder, known.metadata_names, dataset) if known.metadata_names else None,
        images if images.is_dir() else folder,
    )


def _only(folder: Path, names: tuple[str, ...], dataset: str) -> Path:
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
    """Read the csv files of a data set, one after another, as one label table.

    Args:
        dataset: See `dataset_of`.
        labels: One label csv, or several with the same classes.
        metadata: The second csv, where the data set has one; of a hospital's own csv not read here,
            see `sites.own_table.join`.
        layout: Of a hospital's own csv. Default: as the reader knows it.
        images: Folder below which absolute paths of a hospital's own csv lie.

    Raises:
        InputError: See the module; or the files differ in classes, or share an image.
    """
    import numpy as np  # those who only look into `DATASETS` need no pandas
    import pandas as pd

    from cxr_study.data.labels.label_table import classes
    from cxr_study.data.readers.table import one_spelling

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
        return one_spelling(tables[0]) if unified else tables[0]
    whole: pd.DataFrame = pd.concat(tables, ignore_index=True)
    whole.attrs["notes"] = [note for table in tables for note in table.attrs["notes"]]
    names = whole["image"].str.split("/").str[-known.identifying :].str.join("/")
    again = names.duplicated()
    if again.any():
        file = np.repeat([str(csv) for csv in labels], [len(table) for table in tables])
        row = int(np.argmax(again))
        first = int(np.argmax(names == names[row]))
        raise InputError(
            f"{file[row]}: image '{names[row]}' stands in {file[first]} already; leave one "
            "of the files out."
        )
    return one_spelling(whole) if unified else whole
