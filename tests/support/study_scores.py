"""Results of a study, of AUROCs alone: nothing is trained, predicted or written."""

import dataclasses
from pathlib import Path

import numpy as np
import pandas as pd

import study_runs
from cxr_studies.analysis.study_results import StudyResults, by_run, over_seeds
from cxr_studies.plan.study_file import read_study

LACKS = None
"""In place of an AUROC: the model does not have the class."""


def results(reached, planned=(), study="clients", digests=lambda run: {"global": run.key}):
    """Results of a study, by the name of a shipped one.

    `reached`: finished run -> {(model, test set): {class: AUROC}}, NaN: not defined; `planned`:
    runs that are not finished; `digests`: run -> {model: digest}.
    """
    scores = pd.DataFrame(
        _score(run, model, test, name, value)
        for run, models in reached.items()
        for (model, test), classes in models.items()
        for name, value in classes.items()
    )
    means = by_run(scores)
    kept = {
        run.key: dataclasses.replace(study_runs.RESULT, digests=digests(run)) for run in reached
    }
    runs = (*reached, *planned)
    return StudyResults(
        read_study(study), Path("nowhere"), runs, kept, scores, means, over_seeds(means)
    )


def _score(run, model, test, name, value):
    holders = [name in labelled for labelled in run.what["sites"].values()]
    return {
        "scenario": run.scenario, "method": run.row.method, "strategy": run.row.strategy,
        "seed": run.seed, "model": model, "test": test, "class": name, "sites": sum(holders),
        "shared": all(holders), "labelled": True, "predicted": value is not LACKS,
        "positives": 10, "negatives": 10, "auroc": np.nan if value is LACKS else value,
        "auprc": 0.5, "bce": 0.3, "ece": 0.1,
    }  # fmt: skip
