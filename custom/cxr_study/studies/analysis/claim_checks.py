"""Whether what the papers claim about a study holds in it, over its seeds.

A claim consists of comparisons. For each seed a comparison gives one number that the claim says is
above 0, or above minus a margin, see `claim`, and the 95 % t interval of these numbers
decides. That two methods are comparable is nothing that an interval could show; it is judged where
both should have the same models, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from cxr_study.evaluation.seed_intervals import (
    DOES_NOT_HOLD,
    HOLDS,
    NOT_DECIDED,
    Interval,
    interval,
    verdict,
)
from cxr_study.studies.analysis.study_evidence import StudyEvidence
from cxr_study.studies.analysis.study_results import StudyResults
from cxr_study.studies.papers.claim import SAME, Claim, Comparison

_COLUMNS = [
    "claim", "source", "published", "kind", "better", "worse", "model", "test", "group",
    "scenarios", "margin", "difference", "low", "high", "seeds", "verdict",
]  # fmt: skip


@dataclass(frozen=True)
class Finding:
    """What came out of a comparison.

    Attributes:
        comparison: Which.
        scenarios: Names of those it is about.
        difference: The number that is claimed to be above 0, or above minus the margin, over the
            seeds for which all of these scenarios define it; None without such a seed.
        verdict: `HOLDS` where the interval is above that, `DOES_NOT_HOLD` where it is below, else
            `NOT_DECIDED`. Where models should be the same, `HOLDS` where they are, bit for bit,
            `DOES_NOT_HOLD` where they are not and the interval excludes 0.
    """

    comparison: Comparison
    scenarios: tuple[str, ...]
    difference: Interval | None
    verdict: str


@dataclass(frozen=True)
class Judged:
    """A claim with what came out.

    Attributes:
        claim: Which.
        findings: Of its comparisons, in their order, as far as the study was to run their rows and
            scenarios and has their test set.
    """

    claim: Claim
    findings: tuple[Finding, ...]

    @property
    def verdict(self) -> str:
        """`HOLDS` where all findings do, `DOES_NOT_HOLD` where one does not, else undecided."""
        verdicts = {finding.verdict for finding in self.findings}
        if verdicts == {HOLDS}:
            return HOLDS
        return DOES_NOT_HOLD if DOES_NOT_HOLD in verdicts else NOT_DECIDED


def judge(claims: Sequence[Claim], results: StudyResults) -> tuple[Judged, ...]:
    """Judge the claims about a study.

    Args:
        claims: Of any studies; see `published_claims.read`.
        results: Of the study.

    Returns:
        Those of which there is a finding, in their order.
    """
    evidence = StudyEvidence(results)
    judged = []
    for claim in claims:
        if claim.study == results.study.name:
            found = [_finding(which, evidence) for which in claim.comparisons]
            if findings := tuple(each for each in found if each is not None):
                judged.append(Judged(claim, findings))
    return tuple(judged)


def table(judged: Sequence[Judged]) -> pd.DataFrame:
    """All findings, one line each.

    Returns:
        Columns claim, source, published; kind, better and worse (names of rows), model ("" where
        none is named), test, group, scenarios, margin (how far the better row may be behind);
        difference, low, high (the margin is not in them), seeds; verdict.
    """
    lines: list[dict[str, Any]] = []
    for each in judged:
        for finding in each.findings:
            which, found = finding.comparison, finding.difference
            lines.append(
                {
                    "claim": each.claim.text,
                    "source": each.claim.source,
                    "published": each.claim.published,
                    "kind": which.kind,
                    "better": which.better.name,
                    "worse": which.worse.name,
                    "model": which.model or "",
                    "test": which.test,
                    "group": which.group,
                    "scenarios": ", ".join(finding.scenarios),
                    "margin": which.margin,
                    "difference": None if found is None else found.mean,
                    "low": None if found is None else found.low,
                    "high": None if found is None else found.high,
                    "seeds": 0 if found is None else found.seeds,
                    "verdict": finding.verdict,
                }
            )
    numbers = dict.fromkeys(("difference", "low", "high"), float)
    return pd.DataFrame(lines, columns=_COLUMNS).astype(numbers)


def _finding(which: Comparison, evidence: StudyEvidence) -> Finding | None:
    scenarios = evidence.scenarios(which)
    if not scenarios:
        return None
    numbers = evidence.numbers(which, scenarios)
    difference = interval(list(numbers.values()))
    decided = verdict(interval([each + which.margin for each in numbers.values()]))
    if which.kind == SAME and numbers:
        if evidence.same(which, scenarios, numbers):
            decided = HOLDS
        elif decided == HOLDS:
            decided = DOES_NOT_HOLD
    return Finding(which, tuple(scenario.name for scenario in scenarios), difference, decided)
