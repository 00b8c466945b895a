"""Batch normalisation and Adam with TensorFlow's fused kernels.

Keras 3 composes both from elementary operations, for all of its backends. With TensorFlow's single
kernels the graph is smaller: DenseNet121's first step takes a third of the time, and a site trains
a fifth more images per second (see docs/explanation/costs.md). Results differ only by rounding;
variables, their paths and the optimizer's state are those of Keras.
"""

from collections.abc import Iterable, Sequence

import keras
import tensorflow as tf
from keras import ops


class FusedBatchNormalization(keras.layers.BatchNormalization):
    """Keras's layer with one fused kernel for training on batches of images."""

    def call(
        self, inputs: tf.Tensor, training: bool | None = None, mask: tf.Tensor | None = None
    ) -> tf.Tensor:
        """See `keras.layers.BatchNormalization`, whose code runs outside of training on images."""
        images = len(inputs.shape) == 4 and self.axis in (-1, 3) and inputs.dtype != tf.float64
        otherwise = self.synchronized or getattr(self, "renorm", False) or mask is not None
        if otherwise or not (images and training and self.trainable):
            # with fixed statistics, Keras's gradients are faster
            return super().call(inputs, training=training, mask=mask)
        channels = inputs.shape[-1]
        gamma = ops.cast(self.gamma, "float32") if self.scale else tf.ones(channels)
        beta = ops.cast(self.beta, "float32") if self.center else tf.zeros(channels)
        outputs, mean, unbiased, *_ = tf.raw_ops.FusedBatchNormV3(
            x=inputs, scale=gamma, offset=beta, mean=[], variance=[], epsilon=self.epsilon
        )
        number = tf.cast(tf.size(inputs) / channels, tf.float32)
        variance = unbiased * ((number - 1) / number)  # biased, as in Keras
        for moving, value in ((self.moving_mean, mean), (self.moving_variance, variance)):
            moving.assign(moving * self.momentum + value * (1.0 - self.momentum))
        return outputs


def fuse(layers: Iterable[keras.layers.Layer]) -> None:
    """Switch Keras's batch normalisation layers to the fused kernel, in place.

    A copy of the network would require that all layers of a site are serialisable. Subclasses of
    Keras's layer are left alone.
    """
    for layer in layers:
        if type(layer) is keras.layers.BatchNormalization:
            layer.__class__ = FusedBatchNormalization


class FusedAdam(keras.optimizers.Adam):
    """Keras's Adam with one fused kernel per variable; without the option `amsgrad`."""

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
        """Update a variable and its two moments."""
        index = self._get_variable_index(variable)
        momentum, velocity = (kept[index].value for kept in (self._momentums, self._velocities))
        first, second, rate = (tf.cast(n, variable.dtype) for n in (*self._powers, learning_rate))
        tf.raw_ops.ResourceApplyAdam(
            var=variable.handle, m=momentum.handle, v=velocity.handle,
            beta1_power=first, beta2_power=second, lr=rate,
            beta1=self.beta_1, beta2=self.beta_2, epsilon=self.epsilon,
            # dense, since an embedding's gradient may repeat a row
            grad=tf.cast(tf.convert_to_tensor(gradient), variable.dtype),
        )  # fmt: skip
