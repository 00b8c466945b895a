"""A study with what its finished runs have left: what figures, tables and tests are made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from cxr_study.studies.analysis.means import by_run, over_seeds
from cxr_study.studies.analysis.scores import scores
from cxr_study.studies.plan.planned_run import Run
from cxr_study.studies.plan.run_folder import RUNS, Result, read_result
from cxr_study.studies.plan.study_file import Study


@dataclass(frozen=True, eq=False)
class StudyResults:
    """What came out of a study.

    Attributes:
        study: Which.
        folder: Of the studies, with the folders of runs and test sets.
        runs: Planned ones; two may be one, with the same key.
        results: Key -> what is kept of a finished run.
        scores: Class by class; see `scores`.
        means: Over classes, of every run; see `means.by_run`.
        seeds: Over seeds of those; see `means.over_seeds`.
    """

    study: Study
    folder: Path
    runs: tuple[Run, ...]
    results: Mapping[str, Result]
    scores: pd.DataFrame
    means: pd.DataFrame
    seeds: pd.DataFrame

    @property
    def finished(self) -> tuple[Run, ...]:
        """Those that have a result."""
        return tuple(run for run in self.runs if run.key in self.results)


def gather(study: Study, runs: Sequence[Run], folder: Path) -> StudyResults | None:
    """Measure what the finished runs of a study have left.

    Args:
        study: Which.
        runs: Its planned runs.
        folder: Of the studies.

    Returns:
        None where no run is finished.
    """
    read = {run.key: read_result(folder / RUNS / run.key) for run in runs}
    results = {key: result for key, result in read.items() if result is not None}
    if not results:
        return None
    measured = scores(runs, folder)
    means = by_run(measured)
    return StudyResults(study, folder, tuple(runs), results, measured, means, over_seeds(means))
