"""Uncertain and blank labels: the policy by which a table as read becomes labels to train with.

After `apply_policy` a label is in [0, 1], or NaN for not labelled. Uncertain labels are replaced by
one of CheXpert's U-policies, per class:

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
from cxr_study.data.labels.label_table import BLANK, UNCERTAIN, classes

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

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
    return table.assign(**resolved)


def certain(labels: pd.DataFrame) -> pd.DataFrame:
    """Labels to test with: smoothed labels, which are neither 0 nor 1, become NaN."""
    return labels.where((labels == 0) | (labels == 1))


def _resolve(policy: Uncertain, class_name: str, images: np.ndarray) -> np.ndarray | float:
    """Values of a class's uncertain labels at these images."""
    if policy in _FIXED:
        return _FIXED[policy]
    import numpy as np  # not needed to read a policy

    low, high = _SMOOTHED[policy]
    checksums = [zlib.crc32(f"{class_name}\0{image}".encode()) for image in images]
    return low + (high - low) * np.array(checksums, float) / 2**32
