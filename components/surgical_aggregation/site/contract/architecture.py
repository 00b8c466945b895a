"""Requirements on a site's Keras network, and access to its body and head."""

from collections import Counter
from collections.abc import Collection
from typing import Any

import keras
import numpy as np

from surgical_aggregation.aggregation.batch_norm_strategy import HEAD_LAYER, VariableKinds
from surgical_aggregation.checkpoints.checkpoint import Checkpoint, digest
from surgical_aggregation.checkpoints.manifest import Manifest
from surgical_aggregation.site.contract.site import SiteError

__all__ = ["initial_body"]

RANDOM_STATE = "seed_generator_state"
"""Last part of the path of a Keras random generator's state, as dropout has."""


def head_layer(model: keras.Model, classes: tuple[str, ...]) -> keras.layers.Dense:
    """The last layer of a model.

    Raises:
        SiteError: It is not a Dense layer called "head" with one unit per class.
    """
    layer = model.layers[-1]
    if layer.name != HEAD_LAYER or not isinstance(layer, keras.layers.Dense):
        raise SiteError(
            f"the model's last layer must be a Dense called {HEAD_LAYER!r}; got "
            f"{type(layer).__name__} called {layer.name!r}."
        )
    if layer.units != len(classes):
        raise SiteError(
            f"the head needs one unit for each of {len(classes)} classes; it has {layer.units}."
        )
    return layer


def batch_norm_layers(model: keras.Model) -> list[keras.layers.BatchNormalization]:
    """Batch normalisation layers at any depth."""
    return _layers(model, keras.layers.BatchNormalization)


def _layers(model: keras.Model, kind: type[keras.Layer] = keras.Layer) -> list[Any]:
    # Keras has no public access to nested layers, e.g. of a residual block.
    return [layer for layer in model._flatten_layers() if isinstance(layer, kind)]


def body_variables(model: keras.Model) -> dict[str, keras.Variable]:
    """A model's variables by path, without the head's and without random generators' states.

    Raises:
        SiteError: Two variables have the same path.
    """
    twice = sorted(p for p, n in Counter(v.path for v in model.weights).items() if n > 1)
    if twice:
        raise SiteError(
            f"every variable of the model needs a unique path; {len(twice)} paths are shared, e.g. "
            f"{twice[:3]}. Give layers nested in different models or layers different names."
        )
    return {v.path: v for v in model.weights if not v.path.startswith(f"{HEAD_LAYER}/")}


def variable_kinds(model: keras.Model) -> VariableKinds:
    """Kinds of a model's body variables, from its layers. Call it before freezing any."""
    body = body_variables(model)
    of_layers = {v.path for layer in batch_norm_layers(model) for v in layer.weights}
    constant = {
        path
        for path, v in body.items()
        if not keras.backend.is_float_dtype(v.dtype) or not (v.trainable or path in of_layers)
    }
    return VariableKinds(frozenset(of_layers - constant), frozenset(constant))


def freeze(model: keras.Model, paths: Collection[str]) -> None:
    """Freeze variables by path; batch normalisation then uses its frozen statistics.

    A layer whose variables are all frozen becomes untrainable as a whole.
    """
    for layer in batch_norm_layers(model):
        frozen = layer.moving_mean.path in paths and layer.moving_variance.path in paths
        if layer.trainable and frozen:
            layer.trainable = False  # makes Keras use the moving statistics
            for variable in (layer.gamma, layer.beta):
                if variable is not None:
                    variable.trainable = variable.path not in paths
    for layer in _layers(model):
        if layer.weights and all(variable.path in paths for variable in layer.weights):
            layer.trainable = False
    for variable in model.trainable_variables:
        if variable.path in paths:
            variable.trainable = False


def bind(model: keras.Model) -> None:
    """Make Keras's `Normalization` layers compute with their variables, or with plain numbers.

    This layer keeps tensors besides its variables, computed when it is built, adapts to data or
    reads a file (Keras issue 20147), or from given numbers. They do not follow an assigned
    variable, as happens in every round, and a converter to ONNX treats each as an input of the
    network. Works in place at any depth; the layers stay Keras's own, so that saved networks load
    without this package.

    Raises:
        SiteError: A layer normalises other axes than the last ones.
    """
    for layer in _layers(model, keras.layers.Normalization):
        if layer.input_mean is not None:
            layer.mean, layer.variance = np.asarray(layer.mean), np.asarray(layer.variance)
            continue
        mean, variance = layer.adapt_mean, layer.adapt_variance
        if np.broadcast_shapes(mean.shape, layer.mean.shape) != tuple(layer.mean.shape):
            raise SiteError(
                f"Normalization {layer.name!r} must be over the last axes, so that it can follow "
                f"its variables; got axis {layer.axis}. Transpose before and after it."
            )
        layer.mean, layer.variance = mean, variance


def initial_body(model: keras.Model, **facts: object) -> Checkpoint:
    """The body of a model, without its head, as a checkpoint that a run can start from.

    Args:
        model: The network, with a head of any number of units.
        facts: Facts for the manifest, e.g. backbone, image size, weights, seed.
    """
    body = {path: np.asarray(v.numpy()) for path, v in body_variables(model).items()}
    features = int(model.get_layer(HEAD_LAYER).kernel.shape[0])
    made = {"head_features": features, "initial_body_sha256": digest(body)}
    return Checkpoint(body, Manifest({**made, **variable_kinds(model).facts(), **facts}))
