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
    NEGATIVE    0   said to be absent
    UNCERTAIN  -1   said to be uncertain
    BLANK      -2   not mentioned by the report, or an empty cell of a hospital's own table
    NaN             not labelled: nobody looked

After `uncertain_labels.apply` it is in [0, 1], or NaN for not labelled.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

DESCRIPTORS = ("image", "patient", "view", "sex", "age")
LOADED = ("split", "file")  # what `site_data` adds behind the classes
FRONTAL = ("PA", "AP", "frontal")
VIEWS = (*FRONTAL, "lateral", "other", "")

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
    """Build a label table, with a RangeIndex, from arrays of shape (n,) or one value for all.

    Its `attrs["notes"]`, none yet, say to people what a reader made of a file.
    """
    import pandas as pd  # those who only need the names of the columns need none

    descriptors = {"image": image, "patient": patient, "view": view, "sex": sex, "age": age}
    table = pd.DataFrame(descriptors | dict(labels))
    table.attrs["notes"] = []
    return table


def classes(table: pd.DataFrame) -> list[str]:
    """Names of the class columns, in the table's order."""
    return [name for name in table.columns if name not in DESCRIPTORS + LOADED]


def one_sided(table: pd.DataFrame) -> list[str]:
    """What is told of classes that lack a kind of label: nothing can be learned but one answer.

    Args:
        table: Labels to train with, after the policies: the rows of the training split.
    """
    from surgical_aggregation.aggregation import one_sided as sides  # which imports NumPy

    names = classes(table)
    return [
        f"{name}: no {what} training image, so it would say "
        f"{'yes' if what == sides.NEGATIVE else 'no'} to everybody"
        for name, what in sides.lacking(names, table[names].to_numpy(float)).items()
    ]
