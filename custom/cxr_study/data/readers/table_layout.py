"""How a hospital's own csv differs from the form that its reader knows."""

import codecs
from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from cxr_study.common.yaml_files import FileModel, NeedError, Text
from cxr_study.data.labels.label_table import DESCRIPTORS, VIEWS

KINDS = DESCRIPTORS
"""What describes an image; a column is found by one of these words as its header, in any case."""

IGNORED = "ignored"
"""What a column is that the reader leaves out."""

LABELS = ("1", "0", "-1")
SEXES = ("F", "M")
NORMAL = "No Finding"
"""What a listed finding stands for which says that there is none."""

Patients = Literal["exact", "each-image"]


class Findings(FileModel):
    """Where a table lists findings, which then has no column for each class.

    Attributes:
        column: Names of findings, in one row of an image or in several.
        separator: What stands between the findings of a cell: a text, or `cell_values.LIST`.
            None: not said, so a cell that looks like several is refused.
        value: Column with the label of what is listed. None: it is positive.
        unlisted: "negative" where a finding that is not listed is absent. None: it is blank.
    """

    column: Text
    separator: str | None = None
    value: Text | None = None
    unlisted: Literal["negative"] | None = None


def _word(value: object) -> str:
    if isinstance(value, bool):
        raise NeedError("quotes around a word that YAML takes for true or false")
    return "" if value is None else str(value)


def _meant(word: str) -> str:
    if word in (*LABELS, *VIEWS, *SEXES, NORMAL) or word.isdecimal():
        return word
    known = ", ".join((*LABELS, *filter(None, VIEWS), *SEXES, NORMAL))
    raise NeedError(f"one of {known}, a number of years or '' for a blank")


def _encoding(value: object) -> str:
    try:
        "".encode(str(value))  # which codecs that are no encodings of texts refuse
        return codecs.lookup(str(value)).name
    except LookupError:
        raise NeedError("the name of an encoding, such as cp1252") from None


Word = Annotated[str, BeforeValidator(_word)]
"""A text, also where YAML takes it for a number or a date; nothing is a blank."""

_Kind = Literal["image", "patient", "view", "sex", "age", "ignored"]


class TableLayout(FileModel):
    """What a table calls its columns and what its words mean: keys of a site file.

    Attributes:
        columns: Name in the csv -> what it is, one of `KINDS`, or `IGNORED`.
        words: Text of a cell, in any case, or "column:text" for one column alone -> what it stands
            for in columns of labels, views, sexes and ages: 1, 0, -1, a blank, a view, F, M, or a
            number of years; of a listed finding: `NORMAL`, or a blank to leave it out.
        encoding: Of a csv that is not Unicode, such as cp1252.
        findings: Where findings are listed. None: there is a column for each class.
        threshold: The least probability that counts as positive. None: nobody said.
        patients: "exact" where ids are different patients however alike, "each-image" where no
            column names patients. None: ids that differ in leading zeros or ".0" are one patient.
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
        """Columns that list findings: of their names and, perhaps, of their labels."""
        lists = self.findings
        return [] if lists is None else [c for c in (lists.column, lists.value) if c is not None]

    def described(self, header: Sequence[str]) -> dict[str, str]:
        """What columns are: as said, else by their header; one that is not in here is a class."""
        found = {
            name: what
            for name in header
            if (what := name.casefold()) in KINDS and what not in self.columns.values()
        }
        return found | dict(self.columns)
