"""The training loss: binary cross-entropy over labelled entries, and a teacher's pseudo-labels."""

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


class Teacher:
    """Probabilities of a network with the values that its variables had at the last `learn`.

    Args:
        network: Gives probabilities.
    """

    def __init__(self, network: keras.Model):
        self._network = network
        self._kept = [tf.Variable(v.value, trainable=False) for v in network.variables]

    def learn(self) -> None:
        """Keep the values that the network's variables have now."""
        for kept, variable in zip(self._kept, self._network.variables, strict=True):
            kept.assign(variable.value)

    def __call__(self, images: tf.Tensor) -> tf.Tensor:
        """Probabilities of shape (images, classes), float32; no gradient goes through them."""
        with keras.StatelessScope(list(zip(self._network.variables, self._kept, strict=True))):
            probabilities = self._network(images, training=False)
        return tf.stop_gradient(tf.cast(probabilities, tf.float32))


class TaughtOutputs(keras.layers.Layer):
    """Passes probabilities on, and adds the soft pseudo-labels' term to the loss.

    With p the probabilities and p_bar those of the model as it was received, for the same augmented
    images, the loss of an image gets

        1 / C * sum over missing classes c of the cross-entropy of p_c(x) to p_bar_c(x)

    p_bar is computed as in an evaluation. Missing classes are those of a union head that no
    training image of the site has a label for, C the number of the others: a pseudo-label counts as
    much as a label does. Sites must agree to know all classes.

    Args:
        teacher: Whose probabilities are the pseudo-labels.
        missing: Whether each class is missing.

    Attributes:
        teacher: As given.
        missing: As given.
        counts: 1.0 where pseudo-labels count, else 0.0; a `tf.Variable`.

    Source:
        The global teacher of FedMLP, Sun et al., MICCAI 2024, without its prototypes; its released
        code computes that term and drops it.
    """

    def __init__(self, teacher: Teacher, missing: tuple[bool, ...]):
        super().__init__(dtype="float32")
        self.teacher = teacher
        self.missing = missing
        self.counts = tf.Variable(0.0, trainable=False)

    def call(self, images: tf.Tensor, probabilities: tf.Tensor) -> tf.Tensor:
        """The probabilities, of shape (batch, classes)."""
        missing = tf.cast(tf.constant(self.missing), probabilities.dtype)
        entropies = keras.ops.binary_crossentropy(self.teacher(images), probabilities)
        labelled = max(1, self.missing.count(False))
        per_image = keras.ops.sum(missing * entropies, axis=-1) / labelled
        self.add_loss(self.counts * keras.ops.mean(per_image))
        return probabilities
