"""The label table: what every reader returns and everything after it reads.

One row per image and these columns, in this order:

    image     str, path relative to the site's images folder, forward slashes
    patient   str
    view      "PA", "AP" or "" when unknown
    sex       "F", "M" or "" when unknown
    age       float, years; NaN when unknown
    <class>   float, one column per class: 1.0 present, 0.0 absent, NaN not labelled
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd

DESCRIPTORS = ("image", "patient", "view", "sex", "age")
LOADED = ("split", "file")  # what `site_file.load_table` adds behind the classes


def assemble(
    descriptors: Mapping[str, np.ndarray], labels: Mapping[str, np.ndarray]
) -> pd.DataFrame:
    """Build a label table from its columns.

    Args:
        descriptors: One array of shape (n,) for each of `DESCRIPTORS`.
        labels: One array of shape (n,) per class; its key is the canonical class name.

    Returns:
        The label table, with a RangeIndex.
    """
    columns = {name: descriptors[name] for name in DESCRIPTORS} | dict(labels)
    return pd.DataFrame({name: np.asarray(column) for name, column in columns.items()})


def classes(table: pd.DataFrame) -> list[str]:
    """Return the names of the class columns of a label table, in the table's order."""
    return [name for name in table.columns if name not in DESCRIPTORS + LOADED]
