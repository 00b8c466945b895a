"""Batch normalisation and Adam by TensorFlow's own kernels, where Keras composes them of many.

Keras 3 writes both as sums and products, so that they run on every backend. TensorFlow has one
kernel for each: DenseNet121's first step then takes a third of the time, for its graph is smaller,
and a site trains a fifth more images a second (see jobs/README.md). Results are the
same but for rounding; variables, their paths and the optimizer's state are those of Keras.
"""

from collections.abc import Iterable, Sequence

import keras
import tensorflow as tf
from keras import ops


class FusedBatchNormalization(keras.layers.BatchNormalization):
    """Keras's layer, which normalises a batch of images by one kernel in training."""

    def call(
        self, inputs: tf.Tensor, training: bool | None = None, mask: tf.Tensor | None = None
    ) -> tf.Tensor:
        """See `keras.layers.BatchNormalization`; without training, or by other axes, it is that."""
        images = len(inputs.shape) == 4 and self.axis in (-1, 3) and inputs.dtype != tf.float64
        otherwise = self.synchronized or getattr(self, "renorm", False) or mask is not None
        if otherwise or not (images and training and self.trainable):
            # gradients through fixed statistics are faster as sums and products
            return super().call(inputs, training=training, mask=mask)
        channels = inputs.shape[-1]
        gamma = ops.cast(self.gamma, "float32") if self.scale else tf.ones(channels)
        beta = ops.cast(self.beta, "float32") if self.center else tf.zeros(channels)
        outputs, mean, unbiased, *_ = tf.raw_ops.FusedBatchNormV3(
            x=inputs, scale=gamma, offset=beta, mean=[], variance=[], epsilon=self.epsilon
        )
        number = tf.cast(tf.size(inputs) / channels, tf.float32)
        variance = unbiased * ((number - 1) / number)  # as Keras counts it
        for moving, value in ((self.moving_mean, mean), (self.moving_variance, variance)):
            moving.assign(moving * self.momentum + value * (1.0 - self.momentum))
        return outputs


def fuse(layers: Iterable[keras.layers.Layer]) -> None:
    """Have Keras's batch normalisation among a network's layers use the kernel, in place.

    A copy of the network would need every layer of a site's to be serialisable. Layers of other
    classes, also those derived from Keras's, stay as they are.
    """
    for layer in layers:
        if type(layer) is keras.layers.BatchNormalization:
            layer.__class__ = FusedBatchNormalization


class FusedAdam(keras.optimizers.Adam):
    """Keras's Adam, which changes each variable by one kernel; without its option `amsgrad`."""

    def apply(
        self, grads: Sequence[tf.Tensor], trainable_variables: Sequence[object] | None = None
    ) -> None:
        """See `keras.optimizers.Optimizer`."""
        step = tf.cast(self.iterations + 1, tf.float32)
        self._powers = [tf.constant(beta) ** step for beta in (self.beta_1, self.beta_2)]
        super().apply(grads, trainable_variables)

    def update_step(
        self, gradient: tf.Tensor, variable: tf.Variable, learning_rate: tf.Tensor
    ) -> None:
        """Change a variable and its two moments."""
        index = self._get_variable_index(variable)
        momentum, velocity = (kept[index].value for kept in (self._momentums, self._velocities))
        first, second, rate = (tf.cast(n, variable.dtype) for n in (*self._powers, learning_rate))
        tf.raw_ops.ResourceApplyAdam(
            var=variable.handle, m=momentum.handle, v=velocity.handle,
            beta1_power=first, beta2_power=second, lr=rate,
            beta1=self.beta_1, beta2=self.beta_2, epsilon=self.epsilon,
            # an embedding's comes in parts, several of one row among them
            grad=tf.cast(tf.convert_to_tensor(gradient), variable.dtype),
        )  # fmt: skip
