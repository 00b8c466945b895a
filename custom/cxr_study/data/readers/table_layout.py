"""How a hospital's own csv differs from the form that its reader knows."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from cxr_study.data.labels.label_table import DESCRIPTORS, VIEWS

KINDS = DESCRIPTORS
"""What a column can be, besides a class."""

IGNORED = "ignored"
"""What a column is that the reader leaves out."""

LABELS = ("1", "0", "-1")
SEXES = ("F", "M")


@dataclass(frozen=True)
class TableLayout:
    """What a table calls its columns and what its words mean.

    Attributes:
        columns: Name in the csv -> what it is, one of `KINDS` or `IGNORED`.
        words: Text of a cell, in any case -> what it stands for in columns of labels, views, sexes
            and ages: 1, 0, -1, a blank, a view, F, M, or a number of years.
        encoding: Of a csv that is not Unicode, such as cp1252.
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    words: Mapping[str, str] = field(default_factory=dict)
    encoding: str | None = None


def word_fault(meant: str) -> str | None:
    """What a word would need to stand for instead; None where `meant` will do."""
    if meant in (*LABELS, *VIEWS, *SEXES) or meant.isdecimal():
        return None
    known = ", ".join((*LABELS, *filter(None, VIEWS), *SEXES))
    return f"one of {known}, a number of years or '' for a blank"
