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

After `apply_policy` it is in [0, 1], or NaN for not labelled; uncertain labels become what the
U-policies of CheXpert say, per class:

    zeros         0 (default; Kulkarni et al., ML4H 2024)
    ones          1
    ignore        not labelled
    smooth-zeros  a number drawn from [0, 0.3]
    smooth-ones   a number drawn from [0.55, 0.85]

Sources: Irvin et al., AAAI 2019 (U-Zeros, U-Ones, U-Ignore); Pham et al., Neurocomputing 2021,
arXiv:1911.06475 (label smoothing and its ranges).
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from cxr_study.common.errors import InputError

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


if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

__all__ = ["assemble", "classes"]

Uncertain = Literal["zeros", "ones", "ignore", "smooth-zeros", "smooth-ones"]
Blank = Literal["negative", "not labelled"]

_SMOOTHED = {"smooth-zeros": (0.0, 0.3), "smooth-ones": (0.55, 0.85)}
_FIXED = {"zeros": 0.0, "ones": 1.0, "ignore": math.nan}


@dataclass(frozen=True)
class LabelPolicy:
    """What a site makes of the labels that are neither positive nor negative.

    Attributes:
        uncertain: For every class that is not in `by_class`.
        blank: What a finding that the report does not mention counts as. None: undecided, so a
            blank label is refused.
    """

    uncertain: Uncertain = "zeros"
    by_class: Mapping[str, Uncertain] = field(default_factory=dict)
    blank: Blank | None = "negative"

    def of(self, class_name: str) -> Uncertain:
        """Policy of uncertain labels of a class."""
        return self.by_class.get(class_name, self.uncertain)


def apply_policy(table: pd.DataFrame, policy: LabelPolicy) -> pd.DataFrame:
    """Turn a label table as read into labels to train with, in [0, 1] or NaN.

    A smoothed label depends on the names of image and class only, not on rows or computer.

    Raises:
        InputError: There are blank labels and `policy.blank` is None.
    """
    blank = 0.0 if policy.blank == "negative" else math.nan
    resolved = {}
    for name in classes(table):
        labels = table[name].to_numpy(float, copy=True)
        empty = labels == BLANK
        if policy.blank is None and empty.any():
            raise InputError(
                f"column '{name}': {empty.sum()} of {len(table)} cells are blank; say in the site "
                "file whether that means 'blank: negative' or 'blank: not labelled'."
            )
        labels[empty] = blank
        unsure = labels == UNCERTAIN
        labels[unsure] = _resolve(policy.of(name), name, table["image"].to_numpy()[unsure])
        resolved[name] = labels
    return table.assign(**resolved)


def certain(labels: pd.DataFrame) -> pd.DataFrame:
    """Labels to test with: those that a policy made neither 0 nor 1 become NaN."""
    return labels.where((labels == 0) | (labels == 1))


def _resolve(policy: Uncertain, class_name: str, images: np.ndarray) -> np.ndarray | float:
    if policy in _FIXED:
        return _FIXED[policy]
    import numpy as np  # those who only read a policy need no NumPy

    low, high = _SMOOTHED[policy]
    checksums = [zlib.crc32(f"{class_name}\0{image}".encode()) for image in images]
    return low + (high - low) * np.array(checksums, float) / 2**32
