"""What the runs of a study say about two of its rows, seed by seed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from statistics import fmean
from typing import Any

import numpy as np

from cxr_study.jobs.methods import Row
from cxr_study.studies.analysis.reference import counts_on
from cxr_study.studies.analysis.study_results import StudyResults
from cxr_study.studies.papers.claim import EVERY_SITE, KINDS, Comparison
from cxr_study.studies.plan.study_file import Scenario


class StudyEvidence:
    """Compares rows of a study.

    Args:
        results: Of the study.
    """

    def __init__(self, results: StudyResults):
        self.study = results.study
        self.results = results.results
        self.runs = {(run.scenario, run.row, run.seed): run for run in results.runs}
        self.planned = {(scenario, row) for scenario, row, _ in self.runs}
        self.seeds = sorted({seed for _, _, seed in self.runs})
        self.tests = set(results.means["test"])
        keys = ["scenario", "method", "strategy", "seed", "test", "group"]
        self.reached: dict[Any, dict[str, float]] = {
            values: dict(zip(models["model"], models["auroc"], strict=True))
            for values, models in results.means.groupby(keys)
        }
        places = results.means[["scenario", "test", "group"]].drop_duplicates()
        self.places = set(places.itertuples(index=False, name=None))

    def scenarios(self, which: Comparison) -> list[Scenario]:
        """The scenarios of a comparison that were to be run with all its rows, on its test set."""
        return [
            scenario
            for scenario in self.study.scenarios
            if which.test in {*self.tests, EVERY_SITE}
            and scenario.name in (which.scenarios or (scenario.name,))
            and all((scenario.name, row) in self.planned for row in which.rows)
        ]

    def numbers(self, which: Comparison, scenarios: Sequence[Scenario]) -> dict[int, float]:
        """Seed -> the number of a comparison, where all scenarios define it."""
        numbers = {
            seed: KINDS[which.kind](partial(self._auroc, which, seed), which, scenarios)
            for seed in self.seeds
        }
        return {seed: number for seed, number in numbers.items() if not np.isnan(number)}

    def same(self, which: Comparison, scenarios: Sequence[Scenario], seeds: Iterable[int]) -> bool:
        """Whether both rows of a comparison have ended with the same models in finished runs."""
        digests = [
            [
                self.results[self.runs[scenario.name, row, seed].key].digests
                for scenario in scenarios
                for seed in seeds
            ]
            for row in (which.better, which.worse)
        ]
        return digests[0] == digests[1]

    def _auroc(
        self, which: Comparison, seed: int, row: Row, scenario: Scenario, group: str
    ) -> float:
        if which.test != EVERY_SITE:
            return self._on(which.test, which, seed, row, scenario, group)
        tests = [test for test in self.study.tests if (scenario.name, test, group) in self.places]
        aurocs = [self._on(test, which, seed, row, scenario, group) for test in tests]
        return fmean(aurocs) if aurocs else np.nan

    def _on(
        self, test: str, which: Comparison, seed: int, row: Row, scenario: Scenario, group: str
    ) -> float:
        key = (scenario.name, row.method, row.strategy, seed, test, group)
        models = self.reached.get(key, {})
        if which.model is not None and row == which.worse:
            return models.get(which.model, np.nan)
        if counts := counts_on(models, test):
            return models[counts]
        defined = [value for value in models.values() if not np.isnan(value)]
        return fmean(defined) if defined else np.nan
