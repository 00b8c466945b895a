"""What an uncertain and a blank label count as: the U-policies of CheXpert, per class.

| policy | an uncertain label becomes |
|---|---|
| zeros | 0 (default; Kulkarni et al., ML4H 2024) |
| ones | 1 |
| ignore | not labelled |
| smooth-zeros | a number drawn from [0, 0.3] |
| smooth-ones | a number drawn from [0.55, 0.85] |

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


def apply(table: pd.DataFrame, policy: LabelPolicy) -> pd.DataFrame:
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
