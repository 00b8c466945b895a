"""The layout of a hospital's own csv: roles of columns, meanings of words, lists of findings."""

import codecs
from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo

from cxr_study.common.yaml_files import FileModel, NeedError, Text
from cxr_study.data.labels.label_table import DESCRIPTORS, VIEWS

KINDS = DESCRIPTORS
"""Roles of columns that describe an image; a column with such a name, in any case, has the role."""

IGNORED = "ignored"
"""Role of a column that is not read."""

LABELS = ("1", "0", "-1")
"""Positive, negative and uncertain, as written in a table."""
SEXES = ("F", "M")
NORMAL = "No Finding"
"""Meaning of a listed word for the absence of findings."""

Patients = Literal["exact", "each-image"]


def _other(column: str, info: ValidationInfo) -> str:
    if column == info.data.get("column"):
        raise NeedError("another column than that of the findings")
    return column


class Findings(FileModel):
    """Key `findings` of a site file, for a table that lists findings instead of class columns.

    Attributes:
        column: Column with names of findings, in one row per image or several.
        separator: Text between the findings of a cell, or `cell_values.LIST`. None: not given, so a
            cell that looks like a list is an error.
        value: Column with the label of the listed findings. None: they are positive.
        unlisted: "negative": a finding that is not listed is absent. None: it is blank.
    """

    column: Text
    separator: str | None = None
    value: Annotated[Text, AfterValidator(_other)] | None = None
    unlisted: Literal["negative"] | None = None


def _word(value: object) -> str:
    if isinstance(value, bool):
        raise NeedError("quotes around a word that YAML reads as true or false")
    return "" if value is None else str(value)


def _meant(word: str) -> str:
    if word in (*LABELS, *VIEWS, *SEXES, NORMAL) or word.isdecimal():
        return word
    known = ", ".join((*LABELS, *filter(None, VIEWS), *SEXES, NORMAL))
    raise NeedError(f"one of {known}, a number of years or '' for a blank")


def _encoding(value: object) -> str:
    try:
        "".encode(str(value))  # raises for codecs that do not encode text
        return codecs.lookup(str(value)).name
    except LookupError:
        raise NeedError("the name of an encoding, such as cp1252") from None


Word = Annotated[str, BeforeValidator(_word)]
"""A text, also if YAML reads it as a number or a date; an empty value is ""."""

_Kind = Literal["image", "patient", "view", "sex", "age", "ignored"]


class TableLayout(FileModel):
    """Keys of a site file that describe a hospital's own csv.

    Attributes:
        columns: Name of a column -> its role, one of `KINDS`, or `IGNORED`.
        words: Text of a cell in any case, or "column:text" for one column -> its meaning in columns
            of labels, views, sexes and ages: 1, 0, -1, a view, F, M, a number of years, or "" for a
            blank; for a listed finding: `NORMAL`, or "" to leave it out.
        encoding: Encoding of a csv that is not Unicode, such as cp1252.
        findings: Where findings are listed. None: there is a column for each class.
        threshold: The smallest probability that counts as positive. None: not given, so a
            probability is an error.
        patients: "exact": different ids are different patients; "each-image": there is no column
            of patients, each image is one. None: ids that differ only in leading zeros or ".0" are
            the same patient.
    """

    columns: Annotated[dict[Word, _Kind], Field(min_length=1)] = Field(default_factory=dict)
    words: Annotated[dict[Word, Annotated[Word, AfterValidator(_meant)]], Field(min_length=1)] = (
        Field(default_factory=dict)
    )
    encoding: Annotated[str, BeforeValidator(_encoding)] | None = None
    findings: Findings | None = None
    threshold: Annotated[float, Field(gt=0, le=1, strict=True)] | None = None
    patients: Patients | None = None

    @property
    def listing(self) -> list[str]:
        """Columns with listed findings: that of names and, if there is one, that of labels."""
        lists = self.findings
        return [] if lists is None else [c for c in (lists.column, lists.value) if c is not None]

    def described(self, header: Sequence[str]) -> dict[str, str]:
        """Roles of columns: those that are given, else by name.

        Args:
            header: Names of all columns.

        Returns:
            Column -> its role; columns that are not included are classes.
        """
        found = {
            name: what
            for name in header
            if (what := name.casefold()) in KINDS and what not in self.columns.values()
        }
        return found | dict(self.columns)
