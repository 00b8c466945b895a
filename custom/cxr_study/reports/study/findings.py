"""What came out of a claim's comparisons, in words."""

from __future__ import annotations

from dataclasses import dataclass

from cxr_study.reports.page.numbers import UNDEFINED, interval
from cxr_study.reports.study.figures.looks import row_name
from cxr_study.reports.study.tables.layouts import TESTS, classes
from cxr_study.studies.analysis.claims import Finding
from cxr_study.studies.analysis.reference import reference
from cxr_study.studies.analysis.study_results import StudyResults


@dataclass(frozen=True)
class Told:
    """A finding in words.

    Attributes:
        where: On which images and classes, and in which settings where it is not all of the study.
        against: The row that is claimed to be worse, and how far the better one may be behind it;
            the better one, too, unless it is the study's reference.
        number: What is claimed to be above 0, or above minus the margin, with its interval.
        verdict: See `claims.Finding`.
    """

    where: str
    against: str
    number: str
    verdict: str


def told(finding: Finding, results: StudyResults) -> Told:
    """Say what came out of a comparison.

    Args:
        finding: Of it.
        results: Of the study.
    """
    which, found = finding.comparison, finding.difference
    where = [classes(which.test, which.group)]
    if len(finding.settings) < len(results.study.settings):
        where.append(", ".join(finding.settings))
    against = f"against {row_name(which.worse, which.rows)}"
    surgical = reference(results.runs)
    if surgical is not None and which.better != surgical:
        against = f"{row_name(which.better, (*which.rows, surgical))}, {against}"
    if which.model:
        against += f", model of {TESTS.get(which.model, which.model)}"
    if which.margin:
        against += f" ({which.margin:g} behind is enough)"
    number = UNDEFINED
    if found is not None:
        number = interval(found.mean, found.low, found.high, signed=True)
    return Told("; ".join(where), against, number, finding.verdict)
