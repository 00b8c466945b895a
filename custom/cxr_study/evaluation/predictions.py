"""What a model predicts on a test split."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from cxr_study.evaluation.test_split import TestSplit
from cxr_study.training.network_facts import Network
from cxr_study.training.trained_network import restore
from surgical_aggregation.checkpoints.checkpoint import Checkpoint


class PredictionError(ValueError):
    """A model predicts nothing that could be tested."""


@dataclass(frozen=True, eq=False)
class SplitPredictions:
    """A model on a test split.

    Attributes:
        probabilities: A row per image and a column per class of the model, float32.
        features: What the head weighs, float32 (images, features).
    """

    probabilities: pd.DataFrame
    features: np.ndarray


def predict(checkpoint: Checkpoint, network: Network, split: TestSplit) -> SplitPredictions:
    """Let a model predict a test split.

    The checkpoint is a global model, or a site's own.

    Raises:
        PredictionError: A probability is NaN.
        SiteError: The checkpoint does not fit the network.
    """
    # Here, for TensorFlow must not start before its threads are set.
    from cxr_study.training.input_pipeline import dataset

    local = restore(checkpoint, network)
    nothing = np.zeros((len(split.rows), 0), np.float32)
    batches = dataset(
        split.pixels,
        nothing,
        batch_size=256,
        rows=split.rows,
        normalisation=network.normalisation,
    )
    said = local.predict(batches)
    if np.isnan(said.probabilities).any():
        raise PredictionError(
            "the model predicts NaN, so it cannot be tested. Is the learning rate too high?"
        )
    return SplitPredictions(
        pd.DataFrame(said.probabilities, columns=list(local.classes)), said.features
    )
