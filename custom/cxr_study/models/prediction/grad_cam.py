"""Where in an image a class's evidence lies."""

from __future__ import annotations

from collections.abc import Sequence

import keras
import numpy as np
import tensorflow as tf

from cxr_study.training.backbones import IMAGENET, Normalisation
from cxr_study.training.input_pipeline import normalised
from surgical_aggregation.site.training.keras_model import LocalModel


def heat_maps(
    local: LocalModel, pixels: np.ndarray, classes: Sequence[str], how: Normalisation = IMAGENET
) -> dict[str, np.ndarray]:
    """Grad-CAM of some classes for one image.

        heat = relu(sum_k a_k M_k),  a_k = mean over positions of d logit / d M_k

    M are the maps that the network pools. Gradients are the logit's: a probability near 1 has
    next to none. Without a hidden layer a_k is proportional to the head's weight, which is CAM.

    Args:
        local: The model.
        pixels: uint8 (side, side).
        classes: Of the model.
        how: The model's normalisation.

    Returns:
        Class -> float32 (rows, columns) of the maps, at least 0; divided by its largest value, if
        that is not 0.

    Source:
        Selvaraju et al., Grad-CAM, ICCV 2017, equations 1 and 2; Zhou et al., CAM, CVPR 2016.
    """
    network = local.model
    pooling = next(
        layer
        for layer in reversed(network.layers)
        if isinstance(layer, keras.layers.GlobalAveragePooling2D)
    )
    head = network.get_layer("head")
    watched = keras.Model(network.input, [pooling.input, head.input])
    columns = [local.classes.index(name) for name in classes]
    with tf.GradientTape(persistent=True) as tape:
        maps, features = watched(normalised(pixels[None], how), training=False)
        logits = tf.unstack(
            tf.gather(tf.matmul(features, head.kernel) + head.bias, columns, axis=1)[0]
        )
    heats = {}
    for name, logit in zip(classes, logits, strict=True):
        weights = tf.reduce_mean(tape.gradient(logit, maps), axis=(1, 2), keepdims=True)
        heat = tf.nn.relu(tf.reduce_sum(weights * maps, axis=3))[0].numpy()
        heats[name] = heat / heat.max() if heat.max() else heat
    return heats
