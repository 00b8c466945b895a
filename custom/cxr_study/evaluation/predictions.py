"""What a model predicts on a test split."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from cxr_study.evaluation.test_split import TestSplit
from cxr_study.training.network_facts import Network
from cxr_study.training.trained_network import load_into, restore
from surgical_aggregation.checkpoints.checkpoint import Checkpoint
from surgical_aggregation.wire import variables as wire

if TYPE_CHECKING:  # TensorFlow must not start before its threads are set
    from surgical_aggregation.site.training.keras_model import LocalModel


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


class Predictor:
    """Lets models of one network predict test splits.

    The network is built and traced once for all models of the same classes.
    """

    def __init__(self, network: Network):
        self._network = network
        self._built: dict[tuple[str, ...], LocalModel] = {}

    def predict(self, checkpoint: Checkpoint, split: TestSplit) -> SplitPredictions:
        """Let a model, a global one or a site's own, predict a test split.

        Raises:
            PredictionError: A probability is NaN.
            SiteError: The checkpoint does not fit the network.
        """
        # Here, for TensorFlow must not start before its threads are set.
        from cxr_study.training.input_pipeline import dataset

        local = self._loaded(checkpoint)
        batches = dataset(
            split.pixels,
            np.zeros((len(split.rows), 0), np.float32),
            batch_size=256,
            rows=split.rows,
            normalisation=self._network.normalisation,
        )
        said = local.predict(batches)
        if np.isnan(said.probabilities).any():
            raise PredictionError(
                "the model predicts NaN, so it cannot be tested. Is the learning rate too high?"
            )
        return SplitPredictions(
            pd.DataFrame(said.probabilities, columns=list(local.classes)), said.features
        )

    def _loaded(self, checkpoint: Checkpoint) -> LocalModel:
        classes = tuple(wire.classes_of(checkpoint.variables))
        if classes in self._built:
            load_into(self._built[classes], checkpoint)
        else:
            self._built[classes] = restore(checkpoint, self._network)
        return self._built[classes]
