"""Predict images with a model: probabilities, and the features before the head."""

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
    from surgical_aggregation.site.training.local_model import LocalModel


@dataclass(frozen=True, eq=False)
class Predictions:
    """A model's predictions for images of one site.

    Attributes:
        images: The images, with their labels and patients as far as known.
        probabilities: A row per image and a column per class of the model, float32.
        features: Inputs of the head, float32 (images, features).
    """

    images: Images
    probabilities: pd.DataFrame
    features: np.ndarray


class Predictor:
    """Predicts images with several models of one network.

    The network is built and traced once for all models with the same classes, which saves the
    seconds that TensorFlow needs for each.

    Args:
        network: Backbone, image size and hidden units of all models.
    """

    def __init__(self, network: Network):
        self.network = network
        self._built: dict[tuple[str, ...], LocalModel] = {}

    def predict(self, checkpoint: Checkpoint, images: Images) -> Predictions:
        """Predict images with a model, in batches of 256.

        Args:
            checkpoint: A global or a personal model.
            images: Decoded images of the network's size.

        Raises:
            ValueError: A probability is NaN, as after diverged training.
            CheckpointError: The model has no class.
            SiteError: The model does not fit the network.
        """
        classes = tuple(wire.classes_of(checkpoint.variables))
        local = restore(checkpoint, self.network, self._built.get(classes))
        self._built[classes] = local
        return predict(local, images, self.network, batch_size=256)


def restore(
    checkpoint: Checkpoint, network: AnyNetwork, built: LocalModel | None = None
) -> LocalModel:
    """Load a model into its network; starts TensorFlow.

    Args:
        checkpoint: A global or a personal model.
        network: The network to build.
        built: The network of another model with the same classes, whose variables are replaced.
            Default: a new network is built.

    Returns:
        The network with the model's variables; its classes are sorted by name.

    Raises:
        CheckpointError: The model has no class: it is an initial body, or the global model of sites
            with personal heads.
        SiteError: The model does not fit the network.
    """
    from surgical_aggregation.site.training.local_model import LocalModel

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
    """Predict images in batches, so that memory holds the activations of one batch only.

    Args:
        local: The network with a model's variables, see `restore`.
        images: Decoded images of the network's size.
        network: Its normalisation is applied to the images.
        batch_size: Images per batch. Default 64.

    Raises:
        ValueError: A probability is NaN, as after diverged training.
    """
    from cxr_study.training.input_pipeline import normalised

    # Without tf.data, which never frees the arrays that a NumPy function of a dataset refers to.
    starts = range(0, max(1, len(images.rows)), batch_size)
    batches = (images.pixels[images.rows[start : start + batch_size]] for start in starts)
    how = network.normalisation
    outputs = [local.outputs(normalised(np.asarray(pixels), how)) for pixels in batches]
    features, probabilities = map(np.concatenate, zip(*outputs, strict=True))
    if np.isnan(probabilities).any():
        raise ValueError(
            "the model predicts NaN, so it cannot be used. Was the learning rate too high?"
        )
    return Predictions(images, pd.DataFrame(probabilities, columns=list(local.classes)), features)
