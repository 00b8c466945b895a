"""What the models of a study reach on its test sets, class by class, from what is kept of the runs.

A data frame with one row for each run, model, test set and class of the test set that the sites of
the scenario label between them:

    scenario, method, strategy, seed      of the run
    model                                "global", or the site whose own it is
    test                                 name of the test set
    class
    sites                                how many of the scenario's sites label the class
    shared                               whether all of them do
    labelled                             whether the tested site does; True where it is no site's
    predicted                            whether the model has the class
    positives, negatives                 in the test set
    auroc, auprc, bce, ece               NaN where not defined

Not defined is what a model cannot reach because it lacks the class, and what the test set has no
positives or no negatives for; BCE and ECE only need a label.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cxr_study.data.labels.label_table import classes as class_columns
from cxr_study.evaluation import test_split
from cxr_study.evaluation.calibration import calibration_error, reliability
from cxr_study.studies.plan.planned_run import Run
from cxr_study.studies.plan.run_folder import RUNS, TEST_SETS, read_result
from cxr_study.studies.runner import predictions
from surgical_aggregation.aggregation.metrics import auroc, bce

METRICS = ("auroc", "auprc", "bce", "ece")


def scores(runs: Iterable[Run], folder: Path) -> pd.DataFrame:
    """Measure the finished ones of some runs; see above.

    Args:
        runs: Of a study.
        folder: Of the studies.
    """
    runs = list(runs)
    # The fully labelled baseline has a single site, whatever the scenario's are.
    federated = [run for run in runs if run.row.method != "complete"]
    labelled = {(run.scenario, run.seed): run.what["sites"].values() for run in federated}
    rows = []
    tables: dict[str, pd.DataFrame] = {}
    for run in runs:
        result = read_result(folder / RUNS / run.key)
        if result is None:
            continue
        sites = labelled.get((run.scenario, run.seed), run.what["sites"].values())
        for test, key in result.tests.items():
            if key not in tables:
                tables[key] = test_split.read(key, folder / TEST_SETS)
            for model, classes in result.classes.items():
                predicted = predictions.read(folder / RUNS / run.key, model, test)
                facts = {**run.facts, "model": model, "test": test}
                own = run.what["sites"].get(test)
                rows += [
                    {**facts, **measured}
                    for measured in _measure(tables[key], predicted, classes, sites, own)
                ]
    return pd.DataFrame(rows)


def _measure(
    table: pd.DataFrame,
    predicted: np.ndarray,
    classes: Sequence[str],
    sites: Collection[Collection[str]],
    own: Collection[str] | None,
) -> Iterable[dict[str, Any]]:
    """One model on one test set, class by class."""
    for name in class_columns(table):
        labels = table[name].to_numpy(float)
        known = ~np.isnan(labels)
        holders = sum(name in labelled for labelled in sites)
        metrics = dict.fromkeys(METRICS, np.nan)
        if name in classes and known.any():
            probabilities = predicted[known, list(classes).index(name)].astype(float)
            metrics = _metrics(labels[known], probabilities)
        yield {
            "class": name,
            "sites": holders,
            "shared": holders == len(sites),
            "labelled": own is None or name in own,
            "predicted": name in classes,
            "positives": int((labels == 1).sum()),
            "negatives": int((labels == 0).sum()),
            **metrics,
        }


def _metrics(labels: np.ndarray, probabilities: np.ndarray) -> dict[str, float]:
    """Of one class, over its labelled images."""
    from sklearn.metrics import average_precision_score  # here, for every command imports this

    column = labels[:, None], probabilities[:, None]
    area = float(auroc(*column)[0])
    error = calibration_error(reliability(labels, probabilities))
    return {
        "auroc": area,
        "auprc": np.nan if np.isnan(area) else average_precision_score(labels, probabilities),
        "bce": float(bce(*column)[0]),
        "ece": np.nan if error is None else error,
    }
