"""AUROCs by sex, by age and by view.

A data frame with one line for each finished run, test set and subgroup:

    scenario, method, strategy, seed, model, test
    kind, subgroup                "sex", "age" or "view", and which
    images, patients              of the subgroup
    unknown                       images of the test set whose subgroup is not known: left out
    of                            number of classes that the test set has
    classes, auroc, auroc_sd      number of them that the subgroup defines, with mean and sample SD
                                  of their AUROCs
    few                           number of these with fewer than 10 positives, or negatives
    compared, compared_auroc      number of classes with 10 positives and 10 negatives in every
                                  subgroup of the kind, and the mean over them

A class without positives or without negatives in a subgroup is not defined there and left out of
its mean; one with fewer than 10 stays, but its AUROC is imprecise. Means of subgroups are over
different classes; `compared_auroc` is over the same ones in all of them, each with enough images.

Models are those that `compared_model` chooses; NaN is not defined, also where a model lacks a class
of the test set. Where a test set has no information of a kind there is no line.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from cxr_studies.analysis import study_results
from cxr_studies.analysis.study_results import (
    RUN,
    StudyResults,
    compared_predictions,
    run_in_processes,
)
from cxr_studies.plan.run_folder import Result
from cxr_study.data.labels.label_table import classes as class_columns
from cxr_study.evaluation.subgroup_scores import by_subgroup

_KEYS = [*RUN, "kind", "subgroup"]

_COLUMNS = [
    *_KEYS, "images", "patients", "unknown", "of", "classes", "auroc", "auroc_sd", "few",
    "compared", "compared_auroc",
]  # fmt: skip


def subgroups(results: StudyResults, *, processes: int = 1) -> pd.DataFrame:
    """Measure every finished run in every subgroup of its test sets.

    Args:
        results: Of the study.
        processes: Number of processes that share the work.

    Returns:
        See the module's docstring for the columns.
    """
    kept = results.results
    jobs = [(results.folder, key, result) for key, result in kept.items()]
    found = run_in_processes("measuring subgroups", _measured, jobs, processes)
    by_key = dict(zip(kept, found, strict=True))
    lines = [{**run.facts, **line} for run in results.finished for line in by_key[run.key]]
    return pd.DataFrame(lines, columns=_COLUMNS)


def over_seeds(lines: pd.DataFrame) -> pd.DataFrame:
    """Means over seeds of the counts, and of auroc and compared_auroc with their 95 % t intervals.

    Args:
        lines: See `subgroups`.

    Returns:
        Columns as of `study_results.over_seeds`, with the mean counts.
    """
    keys = [name for name in _KEYS if name != "seed"]
    counts = ["images", "patients", "classes", "few", "compared"]
    means = lines.groupby(keys, sort=False)[counts].mean().reset_index()
    return means.merge(study_results.over_seeds(lines, keys, ("auroc", "compared_auroc")), on=keys)


def _measured(folder: Path, key: str, result: Result) -> list[dict[str, Any]]:
    """A run in every subgroup of its test sets."""
    lines = []
    for test, (model, _, table, scores) in compared_predictions(folder, key, result).items():
        labelled = class_columns(table)
        whole = scores.reindex(columns=labelled).to_numpy(float)
        lines += [
            {"model": model, "test": test, **line} for line in by_subgroup(table, labelled, whole)
        ]
    return lines
