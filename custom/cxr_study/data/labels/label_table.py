"""The label table: what every reader returns and everything after it reads.

One row per image and these columns, in this order:

    image     str, path relative to the site's images folder, forward slashes
    patient   str
    view      "PA", "AP", "frontal" (one of the two), "lateral", "other", "" when unknown
    sex       "F", "M" or "" when unknown
    age       float, years; NaN when unknown
    <class>   float, one column per class

A reader interprets nothing: in the table *as read* a label is one of

    POSITIVE    1   present
    NEGATIVE    0   said to be absent
    UNCERTAIN  -1   said to be uncertain
    BLANK      -2   not mentioned by the report, or an empty cell of a hospital's own table
    NaN             not labelled: nobody looked

After `label_policy.apply` it is a number in [0, 1], or NaN for not labelled.
"""

from __future__ import annotations

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
    descriptors: Mapping[str, np.ndarray], labels: Mapping[str, np.ndarray]
) -> pd.DataFrame:
    """Build a label table from its columns.

    Args:
        descriptors: One array of shape (n,) for each of `DESCRIPTORS`.
        labels: One array of shape (n,) per class; its key is the name of the class.

    Returns:
        The label table, with a RangeIndex.
    """
    import numpy as np  # those who only need the names of the columns need no NumPy
    import pandas as pd

    columns = {name: descriptors[name] for name in DESCRIPTORS} | dict(labels)
    return pd.DataFrame({name: np.asarray(column) for name, column in columns.items()})


def classes(table: pd.DataFrame) -> list[str]:
    """Return the names of the class columns of a label table, in the table's order."""
    return [name for name in table.columns if name not in DESCRIPTORS + LOADED]
