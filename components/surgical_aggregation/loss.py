"""The training loss: binary cross-entropy over the entries that are labelled."""

import keras
import tensorflow as tf


def labelled_bce(labels: tf.Tensor, probabilities: tf.Tensor) -> tf.Tensor:
    """Binary cross-entropy of each image, averaged over its labelled classes.

    Without missing labels this is Keras's binary cross-entropy.

    Args:
        labels: 1, 0, a number between (smoothed) or NaN (not labelled: neither loss nor gradient),
            shape (batch, classes).
        probabilities: Sigmoid outputs, same shape.

    Returns:
        Shape (batch,), in nats; 0 for an image without a label.

    Source:
        Kulkarni et al., "From Isolation to Collaboration", ML4H 2024, Eq. 4 (partial loss).
    """
    labelled = tf.logical_not(tf.math.is_nan(labels))
    known = tf.where(labelled, labels, 0.0)
    entries = keras.ops.binary_crossentropy(known, probabilities)
    weights = tf.cast(labelled, entries.dtype)
    return tf.math.divide_no_nan(
        tf.reduce_sum(entries * weights, axis=-1), tf.reduce_sum(weights, axis=-1)
    )
