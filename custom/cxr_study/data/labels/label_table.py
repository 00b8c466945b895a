"""The label table that every reader returns.

One row per image, columns in this order:

    image     str, path relative to the site's images folder, forward slashes
    patient   str
    view      "PA", "AP", "frontal" (one of the two), "lateral", "other", "" when unknown
    sex       "F", "M" or "" when unknown
    age       float, years; NaN when unknown
    <class>   float, one column per class

A reader interprets nothing; in the table *as read* a label is one of

    POSITIVE    1   present
    NEGATIVE    0   absent
    UNCERTAIN  -1   uncertain
    BLANK      -2   not mentioned by the report, or an empty cell of a hospital's own table
    NaN             not labelled: the image was not examined for it

`uncertain_labels.apply_policy` converts the table as read into labels to train with.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

__all__ = ["assemble", "classes"]

DESCRIPTORS = ("image", "patient", "view", "sex", "age")
"""Columns that describe an image; always the first ones."""
LOADED = ("split", "file")
"""Columns that `site_data` adds after the classes."""
FRONTAL = ("PA", "AP", "frontal")
"""Values of `view` that are frontal."""
VIEWS = (*FRONTAL, "lateral", "other", "")
"""All values of `view`."""

POSITIVE, NEGATIVE, UNCERTAIN, BLANK = 1.0, 0.0, -1.0, -2.0


def assemble(
    labels: Mapping[str, np.ndarray],
    *,
    image: np.ndarray,
    patient: np.ndarray,
    view: np.ndarray | str,
    sex: np.ndarray | str = "",
    age: np.ndarray | float = math.nan,
) -> pd.DataFrame:
    """Build a label table as read; see the module for the values of each column.

    Args:
        labels: Class -> labels, float (n,), in the order of the table.
        image: Path of each image below the images folder, text (n,).
        patient: Patient of each image, text (n,).
        view: View of each image, text (n,), or one value for all.
        sex: The same. Default: unknown.
        age: Age of each patient in years, float (n,), or one value for all. Default: unknown.

    Returns:
        The table, with a RangeIndex and an empty list in `attrs["notes"]`, to which readers append
        notes for people about the file.
    """
    import pandas as pd  # not needed for the names of the columns

    descriptors = {"image": image, "patient": patient, "view": view, "sex": sex, "age": age}
    table: pd.DataFrame = pd.DataFrame(descriptors | dict(labels))
    table.attrs["notes"] = []
    return table


def classes(table: pd.DataFrame) -> list[str]:
    """Names of the class columns, in the table's order."""
    return [name for name in table.columns if name not in DESCRIPTORS + LOADED]


def describe_one_sided(table: pd.DataFrame) -> list[str]:
    """Describe classes that lack positive, negative or all labels and cannot be learned.

    Args:
        table: Labels to train with, after the policies: the rows of the training split.

    Returns:
        A line for each such class; none where no row is to be trained with, as in a test set.
    """
    if table.empty:
        return []
    from surgical_aggregation.aggregation import one_sided as sides  # imports NumPy

    names = classes(table)
    would = {
        sides.POSITIVE: "it would predict no for every image",
        sides.NEGATIVE: "it would predict yes for every image",
        sides.LABELLED: "no job can train it; leave it out",
    }
    return [
        f"{name}: no {what} training image, so {would[what]}"
        for name, what in sides.lacking(names, table[names].to_numpy(float)).items()
    ]
