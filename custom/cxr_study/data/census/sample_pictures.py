"""Sample pictures of a site, chosen by label."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from cxr_study.data.labels.label_table import classes


@dataclass(frozen=True, eq=False)
class Sample:
    """A picture and the classes it is positive for.

    Attributes:
        pixels: uint8 (size, size).
        present: Classes.
    """

    pixels: np.ndarray
    present: Sequence[str]


def choose(
    table: pd.DataFrame, pixels: np.ndarray, rows: np.ndarray, number: int = 8
) -> list[Sample]:
    """Choose a picture for each of the rarest classes, and one without any.

    For a class not yet shown it is the first picture in the table of those with the fewest classes.

    Args:
        table: Label table, policy applied.
        pixels: uint8 (m, size, size).
        rows: Row of `pixels` for each row of the table.
        number: At most so many.
    """
    labelled = classes(table)
    positive = (table[labelled] == 1).to_numpy()
    present = positive.sum(axis=1)
    chosen: list[int] = []
    for column in np.argsort(positive.sum(axis=0), kind="stable"):
        with_class = np.flatnonzero(positive[:, column])
        if len(chosen) < number - 1 and len(with_class) and not positive[chosen, column].any():
            chosen.append(int(with_class[present[with_class].argmin()]))
    chosen += np.flatnonzero(present == 0)[:1].tolist()
    return [
        Sample(
            np.asarray(pixels[rows[place]]), [labelled[c] for c in np.flatnonzero(positive[place])]
        )
        for place in chosen
    ]
