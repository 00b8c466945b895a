"""What came out of a claim's comparisons, in words."""

from __future__ import annotations

from dataclasses import dataclass

from cxr_study.studies.claims import Finding
from cxr_study.studies.report.captions import classes
from cxr_study.studies.report.cells import UNDEFINED
from cxr_study.studies.report.figures.looks import row_name
from cxr_study.studies.report.lines import with_ends
from cxr_study.studies.report.tables import TESTS


@dataclass(frozen=True)
class Told:
    """A finding in words.

    Attributes:
        where: On which images and classes, and in which settings where it is not all of them.
        against: The row that is claimed to be worse, and how far the better one may be behind it.
        number: What is claimed to be above 0, with its interval; before the margin is added.
        verdict: See `claims.Finding`.
    """

    where: str
    against: str
    number: str
    verdict: str


def told(finding: Finding) -> Told:
    """Say what came out of a comparison."""
    which, found = finding.comparison, finding.difference
    where = [classes(which.test, which.group)]
    if which.settings:
        where.append(", ".join(finding.settings))
    against = row_name(which.worse, which.rows)
    if which.model:
        against += f", model of {TESTS.get(which.model, which.model)}"
    if which.margin:
        against += f" ({which.margin:g} behind is enough)"
    number = UNDEFINED
    if found is not None:
        ends = (found.mean, found.low, found.high)
        number = with_ends(*(None if x is None else x - which.margin for x in ends), signed=True)
    return Told("; ".join(where), against, number, finding.verdict)
