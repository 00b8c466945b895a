"""What a model predicts on a test split."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from cxr_study.evaluation.test_split import TestSplit
from surgical_aggregation.checkpoints.checkpoint import Checkpoint
from surgical_aggregation.wire import variables as wire


class PredictionError(ValueError):
    """A model predicts nothing that could be tested."""


@dataclass(frozen=True)
class Network:
    """Which network a checkpoint's variables belong to; see `network.build`."""

    backbone: str
    image_size: int
    hidden: int


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
    from cxr_study.training.network import build
    from surgical_aggregation.site.training.keras_model import LocalModel

    body, columns = wire.split(checkpoint.variables)
    model = build(
        network.backbone, len(columns), image_size=network.image_size, hidden=network.hidden
    )
    local = LocalModel(model, tuple(columns))
    local.set_body(body)
    local.set_columns(columns)
    nothing = np.zeros((len(split.rows), 0), np.float32)
    said = local.predict(dataset(split.pixels, nothing, batch_size=256, rows=split.rows))
    if np.isnan(said.probabilities).any():
        raise PredictionError(
            "the model predicts NaN, so it cannot be tested. Is the learning rate too high?"
        )
    return SplitPredictions(
        pd.DataFrame(said.probabilities, columns=list(local.classes)), said.features
    )
