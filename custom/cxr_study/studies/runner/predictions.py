"""What models predict on test sets, kept compressed: any statistic can be had from it later."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cxr_study.evaluation.test_scores import Network, restored
from cxr_study.evaluation.test_set import TestSet
from cxr_study.studies.plan.run_folder import FEATURES_FILE, PREDICTIONS_FILE
from surgical_aggregation.checkpoints.checkpoint import Checkpoint

FEATURES_OF = 500
"""Images of a test set at most whose features are kept, spread evenly over it."""


class PredictionError(ValueError):
    """A model predicts nothing that could be tested."""


@dataclass(frozen=True, eq=False)
class Predicted:
    """A model on a test set.

    Attributes:
        probabilities: A row per image and a column per class of the model, float32.
        features: What the head weighs, of `featured_rows` of the images, float32 (m, features).
    """

    probabilities: pd.DataFrame
    features: np.ndarray


def predict(checkpoint: Checkpoint, network: Network, test: TestSet) -> Predicted:
    """Let a model predict a test set.

    Raises:
        PredictionError: A probability is NaN.
        SiteError: The checkpoint does not fit the network.
    """
    from cxr_study.training.input_pipeline import dataset

    local = restored(checkpoint, network)
    nothing = np.zeros((len(test.rows), 0), np.float32)
    said = local.predict(dataset(test.pixels, nothing, batch_size=256, rows=test.rows))
    if np.isnan(said.probabilities).any():
        raise PredictionError(
            "the model predicts NaN, so it cannot be tested. Is the learning rate too high?"
        )
    probabilities = pd.DataFrame(said.probabilities, columns=list(local.classes))
    return Predicted(probabilities, said.features[featured_rows(len(test.rows))])


def featured_rows(images: int) -> np.ndarray:
    """Which of so many images have their features kept; int64, ascending."""
    return np.linspace(0, images - 1, min(images, FEATURES_OF), dtype=np.int64)


def write(predicted: Mapping[tuple[str, str], Predicted], folder: Path) -> None:
    """Write predictions and features into a run's folder.

    Args:
        predicted: (model, test set) -> what it predicts there.
        folder: The run's.
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
