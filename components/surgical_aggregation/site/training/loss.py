"""The training loss: binary cross-entropy over labelled entries, and a teacher's pseudo-labels."""

from collections.abc import Callable

import keras
import numpy as np
import tensorflow as tf

Loss = Callable[[tf.Tensor, tf.Tensor], tf.Tensor]


def training_loss(weights: np.ndarray | None, focal_gamma: float) -> Loss:
    """Make the loss of a batch: each image's cross-entropy, averaged over its labelled classes.

    The loss is a function of labels (1, 0, a smoothed number between, or NaN: not labelled, without
    loss and gradient) and sigmoid outputs, both of shape (batch, classes). It returns one value per
    image, shape (batch,): 0 without labels; without NaN, Keras's binary cross-entropy.

    Args:
        weights: Weights of a negative and of a positive label of each class, shape (2, classes);
            None: all 1. A smoothed label has an interpolated weight.
        focal_gamma: Each entry is multiplied by |label - probability|^gamma; 0: by 1.

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
            error = tf.abs(known - probabilities)  # clipped: a root has no gradient at 0
            entries *= tf.maximum(error, keras.backend.epsilon()) ** focal_gamma
        return tf.math.divide_no_nan(
            tf.reduce_sum(entries * counted, axis=-1), tf.reduce_sum(counted, axis=-1)
        )

    return loss


def balanced_weights(labels: np.ndarray) -> np.ndarray:
    """Weights that give positives and negatives of a class equal total weight.

    The mean weight of a class's labels is 1. A class without positives or negatives has weights 1.

    Args:
        labels: 1, 0, a number between or NaN, shape (images, classes).

    Returns:
        float32 of shape (2, classes): weight of a negative, weight of a positive.
    """
    labelled = np.sum(~np.isnan(labels), axis=0)
    present = np.nansum(labels, axis=0)
    both = np.stack([labelled - present, present])
    usable = (both > 0).all(axis=0)
    weights = np.ones(both.shape, np.float32)
    weights[:, usable] = labelled[usable] / (2 * both[:, usable])
    return weights


class Teacher:
    """A frozen copy of a network, with the values that its variables had at the last `learn`.

    Args:
        network: Network whose outputs are probabilities.
    """

    def __init__(self, network: keras.Model):
        self._network = network
        self._kept = [tf.Variable(v.value, trainable=False) for v in network.variables]

    def learn(self) -> None:
        """Copy the present values of the network's variables."""
        for kept, variable in zip(self._kept, self._network.variables, strict=True):
            kept.assign(variable.value)

    def __call__(self, images: tf.Tensor) -> tf.Tensor:
        """Probabilities, float32 of shape (batch, classes), without gradient."""
        with keras.StatelessScope(list(zip(self._network.variables, self._kept, strict=True))):
            probabilities = self._network(images, training=False)
        return tf.stop_gradient(tf.cast(probabilities, tf.float32))


class TaughtOutputs(keras.layers.Layer):
    """Identity layer on probabilities that adds the loss term of soft pseudo-labels.

    With p the probabilities and p_bar those of the received model for the same augmented images,
    it adds to the loss of an image x

        1 / C * sum over missing classes c of the cross-entropy of p_c(x) to p_bar_c(x)

    p_bar is computed in inference mode. Missing classes are those of a union head for which the
    site has no training label, and C is the number of the others: a pseudo-label counts as much as
    a label does. Every site knows all classes in this mode.

    Args:
        teacher: The received model, whose probabilities are the pseudo-labels.
        missing: Whether each class is missing.

    Attributes:
        counts: 1.0 if pseudo-labels count, else 0.0; a `tf.Variable`.

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
        """Return the probabilities, shape (batch, classes), unchanged."""
        missing = tf.cast(tf.constant(self.missing), probabilities.dtype)
        entropies = keras.ops.binary_crossentropy(self.teacher(images), probabilities)
        labelled = max(1, self.missing.count(False))
        per_image = keras.ops.sum(missing * entropies, axis=-1) / labelled
        self.add_loss(self.counts * keras.ops.mean(per_image))
        return probabilities
