"""What the cells of a csv mean, as far as data sets agree.

Every function takes the text of a cell, without surrounding blanks, and raises a ValueError that
says what it needs; `CsvColumns.decode` adds file, line and column.
"""

import re
from collections.abc import Callable, Mapping
from typing import TypeVar

import numpy as np

from cxr_study.data.labels.label_table import BLANK, NEGATIVE, POSITIVE, UNCERTAIN

Value = TypeVar("Value")

OLDEST = 120.0
"""Years; an age above it is a mistake, and taken as unknown."""

_CERTAIN = {"1": POSITIVE, "1.0": POSITIVE, "0": NEGATIVE, "0.0": NEGATIVE}
_LABEL = _CERTAIN | {"-1": UNCERTAIN, "-1.0": UNCERTAIN, "": BLANK}


def one_of(what: str, values: Mapping[str, Value]) -> Callable[[str], Value]:
    """Return the meaning of a cell that holds one of a few texts.

    Args:
        what: The texts, for the error.
        values: Text -> its meaning.
    """

    def meaning(text: str) -> Value:
        if text not in values:
            raise ValueError(f"needs {what}; got '{text}'.")
        return values[text]

    return meaning


label = one_of("1, 0, -1 or a blank", _LABEL)
certain_label = one_of("1 or 0", _CERTAIN)


def filled(text: str) -> str:
    """A text that may be anything but blank."""
    if not text:
        raise ValueError("the cell is blank; every row needs a value here.")
    return text


def number(text: str) -> str:
    """The number of a patient, a study or a folder, which stays text: digits and nothing else."""
    if re.fullmatch("[0-9]+", text) is None:
        raise ValueError(
            f"needs a number, digits only; got '{text}'. Did a spreadsheet change the file?"
        )
    return text


def age(text: str) -> float:
    """Years; NaN for a blank and for a number above `OLDEST`."""
    if not text:
        return np.nan
    if re.fullmatch(r"[0-9]+(\.[0-9]*)?", text) is None:
        raise ValueError(f"needs a number of years; got '{text}'.")
    return years if (years := float(text)) <= OLDEST else np.nan
