"""What layers compute with besides variables: Keras's `Normalization` alone keeps tensors.

It makes them of its variables when it is built, adapts to data or reads a file (Keras issue 20147),
or of the numbers it was given. They do not follow a variable that is assigned, as every round does;
and a converter to ONNX takes each for an input of the network.
"""

from __future__ import annotations

import keras
import numpy as np

from surgical_aggregation.site.contract.site import SiteError


def bind(model: keras.Model) -> None:
    """Have normalisations compute with their variables themselves, or with plain numbers.

    In place and however deeply nested; the layers stay Keras's own, so that files of the network
    load without this package.

    Raises:
        SiteError: One normalises other axes than the last ones.
    """
    for layer in model._flatten_layers():  # Keras has no public way to nested layers
        if not isinstance(layer, keras.layers.Normalization):
            continue
        if layer.input_mean is not None:
            layer.mean, layer.variance = np.asarray(layer.mean), np.asarray(layer.variance)
            continue
        mean, variance = layer.adapt_mean, layer.adapt_variance
        if np.broadcast_shapes(mean.shape, layer.mean.shape) != tuple(layer.mean.shape):
            raise SiteError(
                f"Normalization {layer.name!r} needs to be over the last axes, so that it can "
                f"follow its variables; got axis {layer.axis}. Transpose before it and after."
            )
        layer.mean, layer.variance = mean, variance
