"""Patient-level bootstrap intervals of the metrics of single runs.

Intervals over seeds show how much a training varies; these show how much a test set does. Patients
are drawn with replacement, with all their images; see `bootstrap`. The metrics on the resamples are
kept in the runs' folders, so only new runs take long.

Data frames of means have a line for each finished run, model, test set and group of classes:

    scenario, method, strategy, seed, model, test, group
    classes                         number of classes that the means are over
    auroc, auroc_low, auroc_high    mean over the classes with the ends of its 95 % interval
    auprc, auprc_low, auprc_high    likewise

The data frame of classes has a line for each finished run, test set and class:

    scenario, method, strategy, seed, test, class
    patient_low, patient_high       ends of the 95 % interval of a difference of AUROCs

NaN is not defined: a model lacks a class, or the test set defines none; the ends also where one of
the classes has fewer than `bootstrap.FEWEST` patients.
"""

from __future__ import annotations

import warnings
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pandas as pd
from joblib import Memory

from cxr_studies.analysis.study_results import (
    RUN,
    StudyResults,
    by_group,
    compared_model,
    interval_columns,
    run_in_processes,
)
from cxr_studies.plan.run_folder import GLOBAL, RUNS, Result, predictions
from cxr_study.data.labels.label_table import classes as class_columns
from cxr_study.evaluation.bootstrap import (
    Estimate,
    Metric,
    Resampled,
    difference_interval,
    mean_interval,
    resample,
)

RESAMPLED = "resampled-3"
"""Cache in a run's folder: metrics of its models on the resamples, computed where it is missing.
Rename it when the same resamples no longer give the same numbers."""

METRICS: tuple[Metric, ...] = get_args(Metric)

_ENDS = [f"{metric}{end}" for metric in METRICS for end in ("", "_low", "_high")]
_COLUMNS = [*RUN, "group", "classes", *_ENDS]
_BY_CLASS = [
    "scenario", "method", "strategy", "seed", "test", "class", "patient_low", "patient_high",
]  # fmt: skip


@dataclass(frozen=True, eq=False)
class PatientIntervals:
    """The three data frames; see the module's docstring for their columns.

    Attributes:
        means: Of every model on every test set.
        differences: Surgical aggregation minus every other row, with the same scenario and seed;
            the model is the other row's. Where surgical aggregation has no global model, it is
            that of the same site, against a global one that of the tested site.
        classes: The same differences class by class, of the models that `compared_model` chooses.
    """

    means: pd.DataFrame
    differences: pd.DataFrame
    classes: pd.DataFrame


def patient_intervals(
    results: StudyResults,
    *,
    resamples: int = 1000,
    processes: int = 1,
) -> PatientIntervals:
    """Bootstrap intervals of every run, and of its difference to surgical aggregation.

    Differences are paired: both models are measured on the same resamples of a test set.

    Args:
        results: Of the study.
        resamples: Bootstrap resamples of the patients of each test set.
        processes: Number of processes that share the work.
    """
    of_key = resample_runs("resampling patients", results, resamples, processes)
    runs = {tuple(run.facts.values()): run for run in results.finished}
    # By facts: one run may be in several scenarios, each with its own run to compare.
    surgical = {tuple(other.facts.values()): of_key[ours.key] for ours, other in results.pairs()}
    means, differences, by_class = [], [], []
    for keys, rows in by_group(results.scores).groupby([*RUN, "group"], sort=False):
        facts: dict[str, Any] = dict(zip([*RUN, "group"], keys, strict=True))
        classes = rows["class"].tolist()
        run, model, test = runs[keys[:4]], facts["model"], facts["test"]
        second = of_key[run.key][model, test]
        means.append(facts | _figures({m: mean_interval(second, m, classes) for m in METRICS}))
        ours = surgical.get(keys[:4], {})
        same = test if model == GLOBAL else model
        first = ours.get((GLOBAL, test)) or ours.get((same, test))
        if first is None:
            continue
        differing = {m: difference_interval(first, second, m, classes) for m in METRICS}
        differences.append(facts | _figures(differing))
        if facts["group"] == "all" and model == compared_model(
            results.results[run.key].classes, test
        ):
            for name in classes:
                one = difference_interval(first, second, "auroc", [name])
                low, high = (one.low, one.high) if one else (np.nan, np.nan)
                by_class.append({**facts, "class": name, "patient_low": low, "patient_high": high})
    return PatientIntervals(
        pd.DataFrame(means, columns=_COLUMNS),
        pd.DataFrame(differences, columns=_COLUMNS),
        pd.DataFrame(by_class, columns=_BY_CLASS).astype(dict.fromkeys(_BY_CLASS[-2:], float)),
    )


def resample_runs(
    title: str, results: StudyResults, resamples: int, processes: int
) -> dict[str, dict[tuple[str, str], Resampled]]:
    """Metrics of all finished runs, on the test sets themselves and on resamples.

    Args:
        title: Of the progress bar.
        results: Of the study.
        resamples: Bootstrap resamples of the patients of each test set.
        processes: Number of processes that share the work.

    Returns:
        Key of a run -> (model, test set) -> metrics of each class.
    """
    jobs = [(results.folder, key, result, resamples) for key, result in results.results.items()]
    found = run_in_processes(title, _resample_run, jobs, processes)
    return dict(zip(results.results, found, strict=True))


def _figures(estimates: Mapping[Metric, Estimate | None]) -> dict[str, float]:
    """Columns of a line: number of classes, and each metric with the ends of its interval."""
    figures: dict[str, float] = {}
    for metric, found in estimates.items():
        figures["classes"] = 0 if found is None else found.classes
        ends = () if found is None else (found.value, found.low, found.high)
        figures |= interval_columns(metric, *ends)
    return figures


def _resample_run(
    folder: Path, key: str, result: Result, resamples: int
) -> dict[tuple[str, str], Resampled]:
    """(model, test set) -> metrics on resamples of one run; cached in the run's folder."""
    kept = Memory(folder / RUNS / key / RESAMPLED, verbose=0).cache(resample)
    found = {}
    with warnings.catch_warnings():  # joblib's, of a disk that is slow for a moment
        warnings.filterwarnings("ignore", "Persisting input arguments", UserWarning)
        for model, test, table, scores in predictions(folder, key, result):
            labelled = [name for name in class_columns(table) if name in scores]
            found[model, test] = kept(
                table[labelled].to_numpy(float), scores[labelled].to_numpy(), labelled,
                table["patient"].tolist(), seed=_seed(result.tests[test]), resamples=resamples,
            )  # fmt: skip
    return found


def _seed(test_set: str) -> int:
    """Of the resamples of a test set: the same for all models, independent of other test sets'."""
    return zlib.crc32(test_set.encode())
