"""The training loss: binary cross-entropy over the entries that are labelled."""

from __future__ import annotations

from collections.abc import Callable

import keras
import numpy as np
import tensorflow as tf

Loss = Callable[[tf.Tensor, tf.Tensor], tf.Tensor]


def training_loss(weights: np.ndarray | None, focal_gamma: float) -> Loss:
    """Make the loss of a batch: each image's cross-entropy, averaged over its labelled classes.

    The loss takes labels (1, 0, a smoothed number between; NaN, not labelled, has neither loss nor
    gradient) and sigmoid outputs, both of shape (batch, classes). It gives a number per image: 0
    without labels, Keras's binary cross-entropy where none is missing.

    Args:
        weights: Weights of a negative and of a positive label of each class, shape (2, classes);
            None: all 1. A smoothed label has a weight in between.
        focal_gamma: Each entry counts |label - probability|^gamma times; 0: once.

    Source:
        Partial loss: Kulkarni et al., "From Isolation to Collaboration", ML4H 2024, Eq. 4. Focal
        loss without its alpha: Lin et al., ICCV 2017, Eq. 4.
    """

    def loss(labels: tf.Tensor, probabilities: tf.Tensor) -> tf.Tensor:
        labelled = tf.logical_not(tf.math.is_nan(labels))
        known = tf.where(labelled, labels, 0.0)
        entries = keras.ops.binary_crossentropy(known, probabilities)
        counted = tf.cast(labelled, entries.dtype)
        if weights is not None:
            negative, positive = tf.unstack(tf.constant(weights, entries.dtype))
            entries *= negative + known * (positive - negative)
        if focal_gamma:
            error = tf.abs(known - probabilities)  # held from 0, where a root has no slope
            entries *= tf.maximum(error, keras.backend.epsilon()) ** focal_gamma
        return tf.math.divide_no_nan(
            tf.reduce_sum(entries * counted, axis=-1), tf.reduce_sum(counted, axis=-1)
        )

    return loss


def balanced_weights(labels: np.ndarray) -> np.ndarray:
    """Weights that give the positives of a class the total weight of its negatives.

    The mean weight of a class's labels is 1. A class without positives or negatives keeps the
    weights 1.

    Returns:
        float32, shape (2, classes): of a negative, of a positive.
    """
    labelled = np.sum(~np.isnan(labels), axis=0)
    present = np.nansum(labels, axis=0)
    both = np.stack([labelled - present, present])
    usable = (both > 0).all(axis=0)
    weights = np.ones(both.shape, np.float32)
    weights[:, usable] = labelled[usable] / (2 * both[:, usable])
    return weights
