"""A finished run on resamples of the patients it is tested on, kept in its folder."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pandas as pd

from cxr_study.data.labels.label_table import classes as class_columns
from cxr_study.evaluation import test_split
from cxr_study.evaluation.bootstrap import Metric, Resampled, resample
from cxr_study.studies.plan.run_folder import RUNS, TEST_SETS, Result
from cxr_study.studies.runner import predictions

RESAMPLED_FILE = "resampled.npz"
"""In a run's folder: what its models reach on resamples; made anew where it is missing."""

FORMAT = 1
"""Of the file; raise it when the same resamples no longer give the same numbers."""

METRICS: tuple[Metric, ...] = get_args(Metric)

_SEED = 0  # one for all runs: the same test set gives the same resamples


def make(folder: Path, key: str, result: Result, resamples: int) -> None:
    """Resample a run's models and keep what they reach, unless it is kept already.

    Args:
        folder: Of the studies.
        key: The run's.
        result: What is kept of it.
        resamples: How many.
    """
    path = folder / RUNS / key / RESAMPLED_FILE
    if _kept(path, resamples) is not None:
        return
    arrays = {"made": _made(resamples)}
    for test, table_key in result.tests.items():
        table = test_split.read(table_key, folder / TEST_SETS)
        for model in result.classes:
            found = _resample(table, folder / RUNS / key, result, model, test, resamples)
            arrays[f"{model}/{test}/classes"] = np.array(found.classes, str)
            for metric in METRICS:
                arrays[f"{model}/{test}/{metric}"] = np.vstack(
                    [found.values[metric], found.drawn[metric]]
                )
    _replace(path, arrays)


def read(
    folder: Path, key: str, result: Result, patients: Mapping[str, np.ndarray], resamples: int
) -> dict[tuple[str, str], Resampled]:
    """What `make` has kept of a run.

    Args:
        folder: Of the studies.
        key: The run's.
        result: What is kept of it.
        patients: Key of a test set's table -> patient of each image.
        resamples: As many as were made.

    Returns:
        (model, test set) -> what it reaches.
    """
    arrays = _kept(folder / RUNS / key / RESAMPLED_FILE, resamples) or {}
    return {
        (model, test): _model(arrays, f"{model}/{test}", patients[table_key])
        for test, table_key in result.tests.items()
        for model in result.classes
    }


def _resample(
    table: pd.DataFrame, place: Path, result: Result, model: str, test: str, resamples: int
) -> Resampled:
    own = list(result.classes[model])
    labelled = [name for name in class_columns(table) if name in own]
    scores = predictions.read(place, model, test)[:, [own.index(name) for name in labelled]]
    labels = table[labelled].to_numpy(float)
    return resample(labels, scores, labelled, table["patient"], seed=_SEED, resamples=resamples)


def _model(arrays: Mapping[str, np.ndarray], name: str, patients: np.ndarray) -> Resampled:
    rows = {metric: arrays[f"{name}/{metric}"] for metric in METRICS}
    return Resampled(
        tuple(arrays[f"{name}/classes"].tolist()),
        {metric: values[0] for metric, values in rows.items()},
        {metric: values[1:] for metric, values in rows.items()},
        patients,
        _SEED,
    )


def _made(resamples: int) -> np.ndarray:
    """What a file was made by."""
    return np.array([FORMAT, _SEED, resamples])


def _kept(path: Path, resamples: int) -> dict[str, np.ndarray] | None:
    """What is in a file; None where it is not there, or was made otherwise."""
    if not path.is_file():
        return None
    with np.load(path) as arrays:
        if not np.array_equal(arrays["made"], _made(resamples)):
            return None
        return dict(arrays)


def _replace(path: Path, arrays: Mapping[str, Any]) -> None:
    """Write a file in one step; two reports may be made at once."""
    handle, half = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}")
    try:
        with os.fdopen(handle, "wb") as file:
            np.savez(file, **arrays)
        Path(half).replace(path)
    finally:
        Path(half).unlink(missing_ok=True)
