"""A study with the metrics of its finished runs: the input of figures, tables and tests.

`scores` has a row for each run, model, test set and class of the test set:

    scenario, method, strategy, seed   of the run
    model                              "global", the site that the model belongs to, or "server";
                                       see `run_folder`
    test, class
    sites                              number of the scenario's sites that label the class
    shared                             whether all of them do
    labelled                           whether the tested site does; True where it is no site's
    predicted                          whether the model has the class
    positives, negatives               in the test set
    auroc, auprc, bce, ece             NaN where the model lacks the class, or the test set has no
                                       positives or no negatives; BCE and ECE only need a label
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from joblib import Parallel, delayed

from cxr_studies.analysis.intervals_and_tests import interval
from cxr_studies.papers.published_results import LOCAL
from cxr_studies.plan.data_file import DATA_SETS
from cxr_studies.plan.row import Row
from cxr_studies.plan.run_folder import (
    GLOBAL,
    RUNS,
    SERVER,
    Predicted,
    Result,
    Run,
    predictions,
    read_result,
)
from cxr_studies.plan.study_file import Study
from cxr_study.common.progress import bar
from cxr_study.data.labels.label_table import classes as class_columns
from cxr_study.data.labels.vocabulary import CHEXPERT_CLASSES, NIH_CLASSES
from cxr_study.evaluation.calibration_error import calibration_error, reliability
from surgical_aggregation.aggregation.metrics import auroc, bce

METRICS = ("auroc", "auprc", "bce", "ece")
"""Columns of `scores`: area under the ROC and the precision-recall curve, binary cross-entropy, and
expected calibration error."""

GROUPS: Mapping[str, Callable[[pd.DataFrame], pd.Series]] = {
    "all": lambda scores: pd.Series(True, index=scores.index),
    "shared": lambda scores: scores["shared"],
    "unique": lambda scores: ~scores["shared"] & scores["labelled"],
    "elsewhere": lambda scores: ~scores["labelled"],
    "nih": lambda scores: scores["class"].isin(NIH_CLASSES),
    "chexpert": lambda scores: scores["class"].isin(CHEXPERT_CLASSES),
}
"""Classes of a mean: name -> which rows of `scores`. All sites label the shared ones, as in the
papers; unique are the tested site's others; the site does not label those "elsewhere", which are
tested where there are labels for evaluation only."""

T = TypeVar("T")

RUN = ["scenario", "method", "strategy", "seed", "model", "test"]
"""Columns that identify a model on a test set."""


@dataclass(frozen=True, eq=False)
class StudyResults:
    """What came out of a study.

    Attributes:
        study: The study.
        folder: Of the studies, with the folders of runs and test sets.
        runs: Planned ones; two may have the same key and are then one run.
        results: Key -> what is kept of a finished run.
        scores: Class by class; see the module's docstring.
        means: Over classes, of every run; see `by_run`.
        seeds: Over seeds of those; see `over_seeds`.
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

    def pairs(self) -> Iterator[tuple[Run, Run]]:
        """Each finished run of another row with the reference's of the same scenario and seed.

        Yields:
            (run of the reference, run of the other row); see `reference`.
        """
        row = reference(self.runs)
        ours = {(run.scenario, run.seed): run for run in self.finished if run.row == row}
        for run in self.finished:
            if run.row != row and (run.scenario, run.seed) in ours:
                yield ours[run.scenario, run.seed], run


def gather(study: Study, runs: Sequence[Run], folder: Path) -> StudyResults | None:
    """Measure the models of the finished runs of a study on their test sets.

    Args:
        study: The study.
        runs: Its planned runs; see `plan.runs`.
        folder: Of the studies.

    Returns:
        None where no run is finished.
    """
    read = {run.key: read_result(folder / RUNS / run.key) for run in runs}
    results = {key: result for key, result in read.items() if result is not None}
    if not results:
        return None
    measured = scores(runs, results, folder)
    means = by_run(measured)
    return StudyResults(study, folder, tuple(runs), results, measured, means, over_seeds(means))


def reference(runs: Iterable[Run]) -> Row | None:
    """The row that all others are compared with: surgical aggregation.

    Args:
        runs: Planned or finished ones.

    Returns:
        With FedBN+, as in the papers, where that is among the runs, else with the strategy that
        comes first; None where nothing is trained by surgical aggregation.
    """
    rows = dict.fromkeys(run.row for run in runs if run.row.method == "surgical")
    return max(rows, key=lambda row: row.strategy == "fedbn+", default=None)


def compared_model(models: Collection[str], test: str) -> str | None:
    """Which of a run's models is used on a test set where rows are compared.

    Args:
        models: Names of the run's models.
        test: Name of the test set.

    Returns:
        The global model, else the one of the site whose test split it is; None where the test set
        is no site's, such as that of a data set that is cut into sites.
    """
    return next((model for model in (GLOBAL, test) if model in models), None)


def compared_predictions(folder: Path, key: str, result: Result) -> dict[str, Predicted]:
    """Predictions of the models of a finished run that are compared; see `compared_model`.

    Args:
        folder: Of the studies.
        key: Of the run.
        result: Of the run.

    Returns:
        Test set -> predictions; without the test sets on which no single model is compared.
    """
    return {
        each.test: each
        for each in predictions(folder, key, result)
        if each.model == compared_model(result.classes, each.test)
    }


def run_in_processes(
    title: str, work: Callable[..., T], jobs: Sequence[tuple[Any, ...]], processes: int
) -> list[T]:
    """Call a function for each job, several at a time, behind a progress bar.

    Args:
        title: Of the bar.
        work: A function of a module (it is pickled), called with the values of each job.
        jobs: Arguments and results must be picklable.
        processes: Number of processes; with 1 everything runs in this one.

    Returns:
        The results in the order of the jobs.
    """
    found: list[T] = []
    parallel = Parallel(n_jobs=processes, return_as="generator")
    with bar(title) as report:
        for each in parallel(delayed(work)(*job) for job in jobs):
            found.append(each)
            report(len(found), len(jobs))
    return found


def with_table_models(lines: pd.DataFrame) -> pd.DataFrame:
    """The lines of `scores`, or of means of them, that tables show, with the models' names there.

    The global model keeps the name `GLOBAL` and the server's `SERVER`. Models that data sets have
    trained alone keep their names, where all sites are data sets. All other models of sites are
    named `LOCAL`: the one of the site whose test split it is; where that is no site's, there is a
    line for each of them.

    Args:
        lines: With the columns `RUN`.
    """
    own = lines["model"] == lines["test"]
    run = [lines[name] for name in ("scenario", "method", "strategy", "seed", "test")]
    of_data_sets = lines["model"].isin(list(DATA_SETS)).groupby(run).transform("all")
    alone = (lines["method"] == "individual") & of_data_sets
    named = alone | lines["model"].isin([GLOBAL, SERVER])
    kept = lines[named | own | ~own.groupby(run).transform("any")]
    return kept.assign(model=kept["model"].where(named, LOCAL))


def by_group(scores: pd.DataFrame) -> pd.DataFrame:
    """The scores of each group of classes.

    Args:
        scores: See the module's docstring.

    Returns:
        The rows of each of `GROUPS`, with the column `group`; a class may be in several. Metrics
        are NaN in a whole group where the model lacks one of its classes.
    """
    groups = [scores[chosen(scores)].assign(group=name) for name, chosen in GROUPS.items()]
    lines = pd.concat(groups, ignore_index=True)
    whole = lines.groupby([*RUN, "group"])["predicted"].transform("all")
    return lines.assign(**{metric: lines[metric].where(whole) for metric in METRICS})


def by_run(scores: pd.DataFrame) -> pd.DataFrame:
    """Means over classes, of each model on each test set.

    Returns:
        Columns `RUN`, group, of (how many classes), classes (how many are defined), and for each of
        `METRICS` the mean and `<metric>_sd` over those; NaN where the model lacks a class.
    """
    counts = {"of": ("class", "size"), "classes": ("auroc", "count")}
    means: dict[str, tuple[str, str]] = {}
    for metric in METRICS:
        means |= {metric: (metric, "mean"), f"{metric}_sd": (metric, "std")}
    lines = by_group(scores).groupby([*RUN, "group"], sort=False)
    return lines.agg(**counts, **means).reset_index()


def over_seeds(
    means: pd.DataFrame,
    keys: Sequence[str] = ("scenario", "method", "strategy", "model", "test", "group"),
    columns: Sequence[str] = METRICS,
) -> pd.DataFrame:
    """Means of some columns over seeds, with their 95 % t intervals.

    Args:
        means: One line for each seed, such as `by_run` gives.
        keys: Columns that the lines of a mean have in common.
        columns: Those that are averaged.

    Returns:
        Columns `keys`, seeds (how many define the AUROC), and for each of `columns` the mean with
        `<column>_low` and `<column>_high`, NaN where there are fewer than two seeds.
    """
    rows = []
    for values, several in means.groupby(list(keys), sort=False):
        row = dict(zip(keys, values, strict=True)) | {"seeds": int(several["auroc"].count())}
        for name in columns:
            found = interval(several[name].dropna().tolist())
            row |= interval_columns(name, *((found.mean, found.low, found.high) if found else ()))
        rows.append(row)
    ends = [end for name in columns for end in interval_columns(name)]
    return pd.DataFrame(rows, columns=[*keys, "seeds", *ends])


def interval_columns(
    name: str, value: float | None = None, low: float | None = None, high: float | None = None
) -> dict[str, float]:
    """Columns of a metric with the ends of its interval.

    Args:
        name: Of the metric.
        value: The metric; None becomes NaN, as for the ends.
        low: Lower end.
        high: Upper end.

    Example:
        >>> interval_columns("auroc", 0.8, 0.7, 0.9)
        {'auroc': 0.8, 'auroc_low': 0.7, 'auroc_high': 0.9}
    """
    ends = np.array((value, low, high), float).tolist()
    return dict(zip((name, f"{name}_low", f"{name}_high"), ends, strict=True))


def scores(runs: Sequence[Run], results: Mapping[str, Result], folder: Path) -> pd.DataFrame:
    """Measure the models of all finished runs, class by class.

    Args:
        runs: Planned runs of a study.
        results: Key -> result of each finished run.
        folder: Of the studies.

    Returns:
        See the module's docstring for the columns.
    """
    # The fully labelled baseline has a single site, whatever the scenario's are.
    federated = [run for run in runs if run.row.method != "complete"]
    labelled = {(run.scenario, run.seed): run.what["sites"].values() for run in federated}
    rows: list[dict[str, Any]] = []
    for run in runs:
        if run.key not in results:
            continue
        sites = labelled.get((run.scenario, run.seed), run.what["sites"].values())
        for each in predictions(folder, run.key, results[run.key]):
            facts = {**run.facts, "model": each.model, "test": each.test}
            own = run.what["sites"].get(each.test)
            rows += [{**facts, **line} for line in _measure(each, sites, own)]
    return pd.DataFrame(rows)


def _measure(
    model: Predicted, sites: Collection[Collection[str]], own: Collection[str] | None
) -> Iterator[dict[str, Any]]:
    """One model on one test set, class by class.

    Args:
        model: With its predictions.
        sites: Classes that each site of the scenario labels.
        own: Classes that the tested site labels; None where the test set is no site's.
    """
    for name in class_columns(model.table):
        labels = model.table[name].to_numpy(float)
        known = ~np.isnan(labels)
        labelling = sum(name in labelled for labelled in sites)
        metrics = dict.fromkeys(METRICS, np.nan)
        if name in model.scores and known.any():
            metrics = _metrics(labels[known], model.scores[name].to_numpy(float)[known])
        yield {
            "class": name,
            "sites": labelling,
            "shared": labelling == len(sites),
            "labelled": own is None or name in own,
            "predicted": name in model.scores,
            "positives": int((labels == 1).sum()),
            "negatives": int((labels == 0).sum()),
            **metrics,
        }


def _metrics(labels: np.ndarray, probabilities: np.ndarray) -> dict[str, float]:
    """`METRICS` of one class; labels 0 or 1 and probabilities, both of shape (labelled images,)."""
    from sklearn.metrics import average_precision_score  # here, for it takes a second

    column = labels[:, None], probabilities[:, None]
    area = float(auroc(*column)[0])
    error = calibration_error(reliability(labels, probabilities))
    return {
        "auroc": area,
        "auprc": np.nan if np.isnan(area) else average_precision_score(labels, probabilities),
        "bce": float(bce(*column)[0]),
        "ece": np.nan if error is None else error,
    }
