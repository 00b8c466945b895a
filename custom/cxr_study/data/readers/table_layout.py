"""How a hospital's own csv differs from the form that its reader knows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from cxr_study.common.yaml_files import FileModel, Text
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
        separator: What stands between the findings of a cell: a text, or `finding_lists.LIST`.
            None: not said, so a cell that looks like several is refused.
        value: Column with the label of what is listed. None: it is positive.
        unlisted: "negative" where a finding that is not listed is absent. None: it is blank.
    """

    column: Text
    separator: str | None = None
    value: Text | None = None
    unlisted: Literal["negative"] | None = None


@dataclass(frozen=True)
class TableLayout:
    """What a table calls its columns and what its words mean.

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

    columns: Mapping[str, str] = field(default_factory=dict)
    words: Mapping[str, str] = field(default_factory=dict)
    encoding: str | None = None
    findings: Findings | None = None
    threshold: float | None = None
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


def word_fault(meant: str) -> str | None:
    """What a word would need to stand for instead; None where `meant` will do."""
    if meant in (*LABELS, *VIEWS, *SEXES, NORMAL) or meant.isdecimal():
        return None
    known = ", ".join((*LABELS, *filter(None, VIEWS), *SEXES, NORMAL))
    return f"one of {known}, a number of years or '' for a blank"
