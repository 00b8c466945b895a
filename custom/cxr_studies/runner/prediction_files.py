"""What models predict on test sets, kept compressed: any statistic can be had from it later."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from cxr_studies.plan.run_folder import FEATURES_FILE, PREDICTIONS_FILE
from cxr_study.evaluation.predictions import Predictions

FEATURES_OF = 500
"""Images of a test set at most whose features are kept, spread evenly over it."""


def featured_rows(images: int) -> np.ndarray:
    """Which of so many images have their features kept; int64, ascending."""
    return np.linspace(0, images - 1, min(images, FEATURES_OF), dtype=np.int64)


def thinned(predicted: Predictions) -> Predictions:
    """Predictions with the features of `featured_rows` alone: those of all images are large."""
    rows = featured_rows(len(predicted.features))
    return replace(predicted, features=predicted.features[rows])


def write(predicted: Mapping[tuple[str, str], Predictions], folder: Path) -> None:
    """Write predictions and features into a run's folder.

    `predicted` is (model, test set) -> what it predicts there, `thinned`.
    """
    keys = {pair: "/".join(pair) for pair in predicted}
    probabilities: dict[str, Any] = {
        keys[p]: value.probabilities.to_numpy() for p, value in predicted.items()
    }
    features: dict[str, Any] = {keys[p]: value.features for p, value in predicted.items()}
    np.savez_compressed(folder / PREDICTIONS_FILE, **probabilities)
    np.savez_compressed(folder / FEATURES_FILE, **features)


def read(folder: Path, model: str, test: str) -> np.ndarray:
    """Probabilities of a model on a test set, float32 (images, classes of the model)."""
    with np.load(folder / PREDICTIONS_FILE) as arrays:
        return np.asarray(arrays[f"{model}/{test}"])


def read_features(folder: Path, model: str, test: str) -> np.ndarray:
    """Features of a model on `featured_rows` of a test set, float32 (m, features)."""
    with np.load(folder / FEATURES_FILE) as arrays:
        return np.asarray(arrays[f"{model}/{test}"])
