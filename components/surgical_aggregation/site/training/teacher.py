"""The received model as a teacher of the one in training: soft pseudo-labels.

With p the probabilities and p_bar those of the model as it was received, for the same augmented
images, the loss of an image gets

    1 / C * sum over missing classes c of the cross-entropy of p_c(x) to p_bar_c(x)

p_bar is computed as in an evaluation. Missing classes are those of a union head that no training
image of the site has a label for, C the number of the others: a pseudo-label counts as much as a
label does. Sites must agree to know all classes.

Source:
    The global teacher of FedMLP, Sun et al., MICCAI 2024, without its prototypes; its released code
    computes that term and drops it.
"""

from __future__ import annotations

import keras
import tensorflow as tf


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
    """Passes probabilities on, and adds the pseudo-labels' term to the loss.

    Args:
        teacher: Whose probabilities are the pseudo-labels.
        missing: Whether each class is missing.

    Attributes:
        teacher: As given.
        missing: As given.
        counts: 1.0 where pseudo-labels count, else 0.0; a `tf.Variable`.
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
