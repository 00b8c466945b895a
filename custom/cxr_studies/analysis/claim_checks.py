"""Whether the papers' claims about a study hold in it, over its seeds.

A claim consists of comparisons. For each seed a comparison gives one number that is claimed to be
above 0, or above minus a margin (see `claims`), and the 95 % t interval of these numbers decides.
No interval can show that two methods are equal; that is judged only where both should have the
same models, by comparing their arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from statistics import fmean
from typing import Any

import numpy as np
import pandas as pd

from cxr_studies.analysis.intervals_and_tests import (
    DOES_NOT_HOLD,
    HOLDS,
    NOT_DECIDED,
    Interval,
    interval,
    verdict,
)
from cxr_studies.analysis.study_results import StudyResults, compared_model
from cxr_studies.papers.claims import EVERY_SITE, KINDS, Claim, Comparison
from cxr_studies.plan.row import Row
from cxr_studies.plan.run_folder import SERVER
from cxr_studies.plan.study_file import Scenario

_COLUMNS = [
    "claim", "source", "published", "kind", "better", "worse", "model", "test", "group",
    "other_test", "scenarios", "margin", "difference", "low", "high", "seeds", "verdict",
]  # fmt: skip


@dataclass(frozen=True)
class Finding:
    """The result of a comparison.

    Attributes:
        comparison: What was compared.
        scenarios: Names of the scenarios that were to be run with all its rows.
        difference: The number that is claimed to be above 0, or above minus the margin, over the
            seeds for which all of these scenarios define it; None without such a seed.
        verdict: `HOLDS` where the interval is above that, `DOES_NOT_HOLD` where it is below, else
            `NOT_DECIDED`. Where models should be the same, `HOLDS` where they are, bit for bit,
            else `DOES_NOT_HOLD`.
    """

    comparison: Comparison
    scenarios: tuple[str, ...]
    difference: Interval | None
    verdict: str


@dataclass(frozen=True)
class Judged:
    """A claim with the findings of those of its comparisons that the study was to run."""

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

    A claim about all scenarios of its study is judged over all scenarios that this one has.

    Args:
        claims: Of any studies; those of other studies are left out.
        results: Of the study. Its key `claims` may name another study whose claims are tested.

    Returns:
        The claims with at least one finding, in the order given.
    """
    evidence = StudyEvidence(results)
    about = results.study.claims or results.study.name
    judged = [
        Judged(claim, tuple(filter(None, map(evidence.finding, claim.comparisons))))
        for claim in claims
        if claim.study == about
    ]
    return tuple(each for each in judged if each.findings)


def table(judged: Sequence[Judged]) -> pd.DataFrame:
    """All findings, one line each.

    Args:
        judged: See `judge`.

    Returns:
        Columns claim, source, published; kind, better and worse (names of rows), model ("" where
        none is named), test, group, other_test (of "leads_more"), scenarios, margin (how far the
        better row may be behind); difference, low, high (the margin is not in them), seeds;
        verdict.
    """
    lines: list[dict[str, Any]] = []
    for each in judged:
        for finding in each.findings:
            which, found = finding.comparison, finding.difference
            lines.append(
                {
                    **asdict(which),
                    **asdict(found or Interval(np.nan, None, None, 0)),
                    "claim": each.claim.text,
                    "source": each.claim.source,
                    "published": each.claim.published,
                    "kind": KINDS[which.kind].phrase,
                    "better": which.better.name,
                    "worse": which.worse.name,
                    "model": which.model or "",
                    "other_test": which.other_test or "",
                    "scenarios": ", ".join(finding.scenarios),
                    "verdict": finding.verdict,
                }
            )
    frame = pd.DataFrame(lines).rename(columns={"mean": "difference"}).reindex(columns=_COLUMNS)
    return frame.astype(dict.fromkeys(("difference", "low", "high"), float))


class StudyEvidence:
    """What the runs of a study show about two of its rows, seed by seed.

    Args:
        results: Of the study.

    Attributes:
        study: The study.
        results: Key -> result of each finished run.
        runs: (scenario, row, seed) -> planned run.
        tests: Test sets with results, and `EVERY_SITE`.
        reached: (scenario, method, strategy, seed, test, group) -> model -> mean AUROC.
        places: (scenario, test, group) that any run has a mean of.
    """

    def __init__(self, results: StudyResults):
        self.study = results.study
        self.results = results.results
        self.runs = {(run.scenario, run.row, run.seed): run for run in results.runs}
        self.tests = {*results.means["test"], EVERY_SITE}
        keys = ["scenario", "method", "strategy", "seed", "test", "group"]
        self.reached: dict[Any, dict[str, float]] = {
            values: dict(zip(models["model"], models["auroc"], strict=True))
            for values, models in results.means.groupby(keys)
        }
        self.places = {(key[0], *key[4:]) for key in self.reached}

    def finding(self, which: Comparison) -> Finding | None:
        """The result of a comparison; None where the study was not to run it."""
        scenarios = self.scenarios(which)
        if not scenarios:
            return None
        numbers = self.numbers(which, scenarios)
        decided = verdict(interval([each + which.margin for each in numbers.values()]))
        if which.kind == "same" and numbers:
            decided = HOLDS if self.same(which, scenarios, list(numbers)) else DOES_NOT_HOLD
        names = tuple(scenario.name for scenario in scenarios)
        return Finding(which, names, interval(list(numbers.values())), decided)

    def scenarios(self, which: Comparison) -> list[Scenario]:
        """The scenarios of a comparison that were to be run with all its rows, on its test set."""
        planned = {(scenario, row) for scenario, row, _ in self.runs}
        return [
            scenario
            for scenario in self.study.scenarios
            if {which.test, which.other_test or which.test} <= self.tests
            and scenario.name in (which.scenarios or (scenario.name,))
            and all((scenario.name, row) in planned for row in which.rows)
        ]

    def numbers(self, which: Comparison, scenarios: Sequence[Scenario]) -> dict[int, float]:
        """Seed -> the number of a comparison, for the seeds in which all scenarios define it.

        Args:
            which: The comparison; its kind decides how AUROCs become one number, see `KINDS`.
            scenarios: See `scenarios`.
        """
        number = KINDS[which.kind].number
        numbers = {
            seed: number(partial(self._aurocs, seed), which, scenarios)
            for seed in sorted({seed for _, _, seed in self.runs})
        }
        return {seed: number for seed, number in numbers.items() if not np.isnan(number)}

    def same(self, which: Comparison, scenarios: Sequence[Scenario], seeds: Sequence[int]) -> bool:
        """Whether both rows of a comparison ended with the same models.

        Args:
            which: The comparison.
            scenarios: In which both rows are compared.
            seeds: Of finished runs.

        Returns:
            True where the digests of all their models agree, in every scenario and seed.
        """
        better, worse = (
            [
                self.results[self.runs[each.name, row, seed].key].digests
                for each in scenarios
                for seed in seeds
            ]
            for row in (which.better, which.worse)
        )
        return better == worse

    def _aurocs(self, seed: int, which: Comparison, scenario: Scenario) -> list[float]:
        """Mean AUROCs of a comparison's rows with a seed in a scenario; NaN where not defined."""
        models = (None, which.model, None)  # of the better row, the worse one and the baseline
        return [
            self._auroc(seed, which, row, model, scenario.name)
            for row, model in zip(which.rows, models, strict=False)
        ]

    def _auroc(
        self, seed: int, which: Comparison, row: Row, meant: str | None, scenario: str
    ) -> float:
        """Mean AUROC of one row; over `EVERY_SITE` the mean of test sets that have the group."""
        tests = self.study.tests if which.test == EVERY_SITE else (which.test,)
        aurocs = []
        for test in tests:
            if which.test == EVERY_SITE and (scenario, test, which.group) not in self.places:
                continue
            key = (scenario, row.method, row.strategy, seed, test, which.group)
            aurocs.append(_of_models(self.reached.get(key, {}), test, meant))
        return fmean(aurocs) if aurocs else np.nan


def _of_models(models: dict[str, float], test: str, meant: str | None) -> float:
    """AUROC of the named model or of the compared one, else the mean over sites that define it."""
    if only := meant or compared_model(models, test):
        return models.get(only, np.nan)
    defined = [v for model, v in models.items() if model != SERVER and not np.isnan(v)]
    return fmean(defined) if defined else np.nan
