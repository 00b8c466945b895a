"""The received model as a teacher of the one in training: two terms of the loss.

With f the inputs of the head (d of them), p the probabilities, and bars over those of the model as
it was received, for the same augmented images, the loss of an image gets

    consistency      lambda / d * |f(x) - f_bar(x)|^2
    pseudo-labels    1 / C * sum over missing classes of the cross-entropy of p_c(x) to a target
                       soft         p_bar_c(x)
                       confident    1 where p_bar_c(x) > 0.85, 0 where p_bar_c(x) < 0.01; in
                                    between the class does not count

f_bar is computed as f is, with the statistics of the batch where batch normalisation learns, so
that the distance begins at 0; p_bar as in an evaluation. Missing classes are those of a union head
that no training image of the site has a label for, C the number of the others: a pseudo-label
counts as much as a label does.

Source:
    Consistency names no class and sends nothing; a teacher's features are used so by Ark+ (Ma et
    al., Nature 2025). Pseudo-labels need sites that agree to know all classes. "confident": FedLSM,
    Deng et al., MICCAI 2023; its entropy-ranked pools, MixUp of uncertain images, strong and weak
    views and EMA teachers are left out; its released server also reads all sites' labels for class
    weights, which is not in the paper and not here. "soft": the global teacher of FedMLP, Sun et
    al., MICCAI 2024, without its prototypes; its released code computes that term and drops it.
"""

from __future__ import annotations

from typing import NamedTuple

import keras
import tensorflow as tf

from surgical_aggregation.site.contract.architecture import RANDOM_STATE

POSITIVE, NEGATIVE = 0.85, 0.01
"""Beyond these probabilities a teacher is confident, as in FedLSM's experiments."""


class Terms(NamedTuple):
    """What is added to the loss.

    Attributes:
        consistency: lambda above; 0: none.
        pseudo_labels: "none", "soft" or "confident".
        missing: Whether each class is missing.
    """

    consistency: float
    pseudo_labels: str
    missing: tuple[bool, ...]

    @property
    def any(self) -> bool:
        """Whether there is a term at all."""
        return bool(self.consistency) or self.teaches_labels

    @property
    def teaches_labels(self) -> bool:
        """Whether there are pseudo-labels."""
        return self.pseudo_labels != "none" and any(self.missing)


class Teacher:
    """Outputs of a network with the values that its variables had at the last `learn`.

    Args:
        network: Gives inputs of the head and probabilities.
    """

    def __init__(self, network: keras.Model):
        self._network = network
        self._kept = [tf.Variable(v.value, trainable=False) for v in network.variables]
        pairs = zip(network.variables, self._kept, strict=True)
        self._generators = [pair for pair in pairs if pair[0].path.endswith(RANDOM_STATE)]

    def learn(self) -> None:
        """Keep the values that the network's variables have now."""
        for kept, variable in zip(self._kept, self._network.variables, strict=True):
            kept.assign(variable.value)

    def __call__(self, images: tf.Tensor, *, training: bool) -> tuple[tf.Tensor, tf.Tensor]:
        """Inputs of the head and probabilities, float32; no gradient goes through them.

        In training, dropout drops what it drops in the network's own pass over these images.
        """
        pairs = list(zip(self._network.variables, self._kept, strict=True))
        with keras.StatelessScope(pairs) as scope:
            outputs = self._network(images, training=training)
        for variable, kept in self._generators if training else ():
            kept.assign(scope.get_current_value(variable))
        features, probabilities = (tf.stop_gradient(tf.cast(o, tf.float32)) for o in outputs)
        return features, probabilities


class TaughtOutputs(keras.layers.Layer):
    """Passes probabilities on, and adds the terms of the loss.

    Args:
        teacher: Whose outputs count.
        terms: What to add.

    Attributes:
        pseudo_labels_count: 1.0 where pseudo-labels count, else 0.0; a `tf.Variable`.
    """

    def __init__(self, teacher: Teacher, terms: Terms):
        super().__init__(dtype="float32")
        self._teacher = teacher
        self._terms = terms
        self.pseudo_labels_count = tf.Variable(0.0, trainable=False)

    def call(
        self,
        images: tf.Tensor,
        features: tf.Tensor,
        probabilities: tf.Tensor,
        training: bool = False,
    ) -> tf.Tensor:
        """The probabilities, of shape (batch, classes)."""
        terms = self._terms
        if terms.consistency:
            taught, _ = self._teacher(images, training=training)
            self.add_loss(terms.consistency * keras.ops.mean(keras.ops.square(features - taught)))
        if terms.teaches_labels:
            _, taught = self._teacher(images, training=False)
            targets, counted = targets_of(taught, terms)
            entries = counted * keras.ops.binary_crossentropy(targets, probabilities)
            labelled = max(1, terms.missing.count(False))
            per_image = keras.ops.sum(entries, axis=-1) / labelled
            self.add_loss(self.pseudo_labels_count * keras.ops.mean(per_image))
        return probabilities


def targets_of(taught: tf.Tensor, terms: Terms) -> tuple[tf.Tensor, tf.Tensor]:
    """Targets by a teacher's probabilities, and 1.0 where they count; both (images, classes)."""
    missing = tf.cast(tf.constant(terms.missing), taught.dtype)
    if terms.pseudo_labels == "soft":
        return taught, tf.broadcast_to(missing, tf.shape(taught))
    positive, negative = taught > POSITIVE, taught < NEGATIVE
    confident = tf.cast(tf.logical_or(positive, negative), taught.dtype)
    return tf.cast(positive, taught.dtype), missing * confident
