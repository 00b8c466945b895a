"""What a model predicts on images."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from cxr_study.data.images.image_store import Images
from cxr_study.training.network import AnyNetwork, Network
from surgical_aggregation.checkpoints.checkpoint import Checkpoint, CheckpointError
from surgical_aggregation.wire import variables as wire

if TYPE_CHECKING:  # TensorFlow must not start before its threads are set
    from surgical_aggregation.site.training.keras_model import LocalModel


@dataclass(frozen=True, eq=False)
class Predictions:
    """A model on images of one site.

    Attributes:
        images: What was predicted, with what is known of it.
        probabilities: A row per image and a column per class of the model, float32.
        features: What the head weighs, float32 (images, features).
    """

    images: Images
    probabilities: pd.DataFrame
    features: np.ndarray


class Predictor:
    """Lets models of one network predict images.

    The network is built and traced once for all models of the same classes.
    """

    def __init__(self, network: Network):
        self.network = network
        self._built: dict[tuple[str, ...], LocalModel] = {}

    def predict(self, checkpoint: Checkpoint, images: Images) -> Predictions:
        """Let a model, a global one or a site's own, predict images to test it.

        Raises:
            ValueError: A probability is NaN; or see `restore`.
        """
        classes = tuple(wire.classes_of(checkpoint.variables))
        local = restore(checkpoint, self.network, self._built.get(classes))
        self._built[classes] = local
        found = predict(local, images, self.network, batch_size=256)
        if np.isnan(found.probabilities.to_numpy()).any():
            raise ValueError(
                "the model predicts NaN, so it cannot be tested. Is the learning rate too high?"
            )
        return found


def restore(
    checkpoint: Checkpoint, network: AnyNetwork, built: LocalModel | None = None
) -> LocalModel:
    """Load a model, a global one or a site's own, into its network.

    Args:
        checkpoint: The model, whose classes the result has, sorted by name.
        network: What it is built as.
        built: The network of another model with these classes, to load it into. Default: a new one.

    Raises:
        CheckpointError: The model has no class: it is an initial body, or heads stayed at their
            sites.
        SiteError: It does not fit the network.
    """
    from surgical_aggregation.site.training.keras_model import LocalModel

    body, columns = wire.split(checkpoint.variables)
    if not columns:
        raise CheckpointError(
            "a model with a head is needed; this one has no class. It is an initial body, or its "
            "sites kept their heads: ask for a site's own model."
        )
    local = built or LocalModel(network.build(len(columns)), wire.classes_of(checkpoint.variables))
    local.set_body(body)
    local.set_columns(columns)
    return local


def predict(
    local: LocalModel, images: Images, network: Network, batch_size: int = 64
) -> Predictions:
    """Predict images in batches, so that memory holds the activations of one."""
    from cxr_study.training.input_pipeline import normalised

    # Not through tf.data, which keeps what a NumPy function of a dataset refers to.
    starts = range(0, max(1, len(images.rows)), batch_size)
    batches = (images.pixels[images.rows[start : start + batch_size]] for start in starts)
    how = network.normalisation
    outputs = [local.outputs(normalised(np.asarray(pixels), how)) for pixels in batches]
    features, probabilities = map(np.concatenate, zip(*outputs, strict=True))
    return Predictions(images, pd.DataFrame(probabilities, columns=list(local.classes)), features)
