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

After `apply_policy` it is in [0, 1], or NaN for not labelled. Uncertain labels are replaced by one
of CheXpert's U-policies, per class:

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
    """Describe classes that have only positive or only negative labels and cannot be learned.

    Args:
        table: Labels to train with, after the policies: the rows of the training split.

    Returns:
        A line for each such class.
    """
    from surgical_aggregation.aggregation import one_sided as sides  # imports NumPy

    names = classes(table)
    return [
        f"{name}: no {what} training image, so it would predict "
        f"{'yes' if what == sides.NEGATIVE else 'no'} for every image"
        for name, what in sides.lacking(names, table[names].to_numpy(float)).items()
    ]


__all__ = ["assemble", "classes"]

Uncertain = Literal["zeros", "ones", "ignore", "smooth-zeros", "smooth-ones"]
"""Policies of uncertain labels; see the module."""
Blank = Literal["negative", "not labelled"]
"""Meanings of blank labels."""

_SMOOTHED = {"smooth-zeros": (0.0, 0.3), "smooth-ones": (0.55, 0.85)}
_FIXED = {"zeros": 0.0, "ones": 1.0, "ignore": math.nan}


@dataclass(frozen=True)
class LabelPolicy:
    """How a site treats labels that are neither positive nor negative.

    Attributes:
        uncertain: Policy of uncertain labels, for classes that are not in `by_class`.
        by_class: Class -> its policy of uncertain labels.
        blank: Meaning of a blank label. None: undecided, so blank labels are errors.
    """

    uncertain: Uncertain = "zeros"
    by_class: Mapping[str, Uncertain] = field(default_factory=dict)
    blank: Blank | None = "negative"

    def of(self, class_name: str) -> Uncertain:
        """Policy of uncertain labels of a class."""
        return self.by_class.get(class_name, self.uncertain)


def apply_policy(table: pd.DataFrame, policy: LabelPolicy) -> pd.DataFrame:
    """Convert a label table as read into labels to train with, in [0, 1] or NaN.

    A smoothed label is a pseudo-random number that depends only on the names of image and class, so
    it is the same in every run and on every machine.

    Args:
        table: Label table as read; stays unchanged.
        policy: The site's.

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
                f"column '{name}': {empty.sum()} of {len(table)} cells are blank; set their "
                "meaning in the site file: 'blank: negative' or 'blank: not labelled'."
            )
        labels[empty] = blank
        unsure = labels == UNCERTAIN
        labels[unsure] = _resolve(policy.of(name), name, table["image"].to_numpy()[unsure])
        resolved[name] = labels
    trained: pd.DataFrame = table.assign(**resolved)
    return trained


def certain(labels: pd.DataFrame) -> pd.DataFrame:
    """Labels to test with: smoothed labels, which are neither 0 nor 1, become NaN."""
    tested: pd.DataFrame = labels.where((labels == 0) | (labels == 1))
    return tested


def _resolve(policy: Uncertain, class_name: str, images: np.ndarray) -> np.ndarray | float:
    """Values of a class's uncertain labels at these images."""
    if policy in _FIXED:
        return _FIXED[policy]
    import numpy as np  # not needed to read a policy

    low, high = _SMOOTHED[policy]
    checksums = [zlib.crc32(f"{class_name}\0{image}".encode()) for image in images]
    return low + (high - low) * np.array(checksums, float) / 2**32
