"""What the writers of the official layouts have in common."""

from dataclasses import dataclass
from pathlib import Path

import pandas as pd


@dataclass(frozen=True)
class Layout:
    """Where a site's data lie, once its labels are written.

    Attributes:
        dataset: A key of `cxr_study.data.readers.DATASETS`.
        labels: The csv to train from.
        images: Folder that the images' names are relative to.
        names: Image of each row of the cohort, as the label table names it.
        classes: Classes to list in the site file; None for all of the data set's.
    """

    dataset: str
    labels: Path
    images: Path
    names: list[str]
    classes: tuple[str, ...] | None = None


def write_csv(table: pd.DataFrame, csv: Path) -> None:
    """Write a csv, compressed where its name ends with .gz; the same table gives the same bytes."""
    csv.parent.mkdir(parents=True, exist_ok=True)
    packing = {"method": "gzip", "mtime": 0} if csv.suffix == ".gz" else None
    table.to_csv(csv, index=False, lineterminator="\n", compression=packing)
