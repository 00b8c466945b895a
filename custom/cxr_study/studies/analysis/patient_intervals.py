"""How far the figures of single runs may be off, over the patients of the test sets.

Intervals over seeds say how much a training varies; these say how much a test set does. Patients
are drawn again with all their images; see `bootstrap`. Data frames of means have a line
for each finished run, model, test set and group of classes, with the columns `means.RUN`, group and

    classes                         over how many the means are
    auroc, auroc_low, auroc_high    mean over the classes with the ends of its 95 % interval
    auprc, auprc_low, auprc_high    likewise

That of classes has one for each finished run, test set and class, with the columns scenario,
method, strategy, seed, test and class, and

    patient_low, patient_high       ends of the 95 % interval of a difference of AUROCs

NaN is not defined: a model lacks a class, or the test set defines none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from cxr_study.common.parallel import shared_out
from cxr_study.common.progress import Report
from cxr_study.evaluation import test_split
from cxr_study.evaluation.bootstrap import (
    Estimate,
    Metric,
    Resampled,
    difference_interval,
    mean_interval,
)
from cxr_study.studies.analysis import resampled_run
from cxr_study.studies.analysis.means import GROUPS, RUN, with_ends
from cxr_study.studies.analysis.reference import counts_on, reference
from cxr_study.studies.analysis.resampled_run import METRICS
from cxr_study.studies.analysis.study_results import StudyResults
from cxr_study.studies.plan.planned_run import Run
from cxr_study.studies.plan.run_folder import GLOBAL, TEST_SETS

_COLUMNS = [
    *RUN,
    "group",
    "classes",
    *(f"{metric}{end}" for metric in METRICS for end in ("", "_low", "_high")),
]

_BY_CLASS = [
    "scenario", "method", "strategy", "seed", "test", "class", "patient_low", "patient_high",
]  # fmt: skip

ByModel = Mapping[tuple[str, str], Resampled]
"""(model, test set) -> what it reaches."""


@dataclass(frozen=True, eq=False)
class PatientIntervals:
    """All three data frames.

    Attributes:
        means: Of every model on every test set.
        differences: Surgical aggregation minus every other row, with the same scenario and seed;
            the model is the other row's. Where surgical aggregation has no global model, it is
            that of the same site.
        classes: The same differences class by class, of models as `reference.counts_on` has them.
    """

    means: pd.DataFrame
    differences: pd.DataFrame
    classes: pd.DataFrame


def patient_intervals(
    results: StudyResults,
    *,
    resamples: int = 1000,
    processes: int = 1,
    report: Report = lambda done, total: None,
) -> PatientIntervals:
    """All three data frames; see above.

    What the models reach on the resamples is kept in the runs' folders, so that only new runs take
    long.

    Args:
        results: Of the study.
        resamples: Of the patients.
        processes: How many resample at the same time.
        report: Called after each run.
    """
    jobs = [(results.folder, key, result, resamples) for key, result in results.results.items()]
    shared_out(resampled_run.make, jobs, processes=processes, report=report)
    reached = _reached(results, resamples)
    row = reference(results.runs)
    ours = {(run.scenario, run.seed): run for run in results.finished if run.row == row}
    means, differences, by_class = [], [], []
    for run, facts, classes in _chosen(results):
        model = reached[run.key][facts["model"], facts["test"]]
        estimates = {metric: mean_interval(model, metric, classes) for metric in METRICS}
        means.append(facts | _figures(estimates))
        surgical = ours.get((run.scenario, run.seed))
        if surgical is None or run.row == row:
            continue
        first = _like(reached[surgical.key], facts["model"], facts["test"])
        if first is not None:
            estimates = {
                metric: difference_interval(first, model, metric, classes) for metric in METRICS
            }
            differences.append(facts | _figures(estimates))
            models = results.results[run.key].classes
            if facts["group"] == "all" and facts["model"] == counts_on(models, facts["test"]):
                by_class += [facts | each for each in _by_class(first, model, classes)]
    return PatientIntervals(
        pd.DataFrame(means, columns=_COLUMNS),
        pd.DataFrame(differences, columns=_COLUMNS),
        pd.DataFrame(by_class, columns=_BY_CLASS),
    )


def _reached(results: StudyResults, resamples: int) -> dict[str, ByModel]:
    """Key of a run -> what its models reach on the resamples."""
    tables = {key for result in results.results.values() for key in result.tests.values()}
    patients = {
        key: test_split.read(key, results.folder / TEST_SETS)["patient"].to_numpy()
        for key in tables
    }
    return {
        key: resampled_run.read(results.folder, key, result, patients, resamples)
        for key, result in results.results.items()
    }


def _chosen(results: StudyResults) -> Iterator[tuple[Run, dict[str, Any], list[str]]]:
    """Every finished run, model, test set and group: the run, what tells it, and its classes."""
    runs = {tuple(run.facts.values()): run for run in results.finished}
    for group, chosen in GROUPS.items():
        for keys, rows in results.scores[chosen(results.scores)].groupby(RUN, sort=False):
            facts = dict(zip(RUN, keys, strict=True)) | {"group": group}
            yield runs[keys[:4]], facts, rows["class"].tolist()


def _like(surgical: ByModel, model: str, test: str) -> Resampled | None:
    """What is held against a model: the global one, or the same site's; None: there is none."""
    return surgical.get((GLOBAL, test)) or surgical.get((model, test))


def _by_class(
    first: Resampled, second: Resampled, classes: Sequence[str]
) -> Iterator[dict[str, Any]]:
    """Ends of the intervals of single classes."""
    for name in classes:
        found = difference_interval(first, second, "auroc", [name])
        ends = (np.nan, np.nan) if found is None else (found.low, found.high)
        yield {"class": name, "patient_low": ends[0], "patient_high": ends[1]}


def _figures(estimates: Mapping[Metric, Estimate | None]) -> dict[str, float]:
    figures: dict[str, float] = {}
    for metric, found in estimates.items():
        figures["classes"] = 0 if found is None else found.classes
        figures |= (
            with_ends(metric)
            if found is None
            else with_ends(metric, found.value, found.low, found.high)
        )
    return figures
