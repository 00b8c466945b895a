"""Build networks, a body and a dense head with a sigmoid unit per class, also from a manifest.

Keras is imported only when a network is built.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cxr_study.training import backbones
from cxr_study.training.backbones import APPLICATIONS, HIDDEN_UNITS, Normalisation
from surgical_aggregation.checkpoints.checkpoint import Checkpoint, CheckpointError
from surgical_aggregation.site.contract.site import Site

if TYPE_CHECKING:
    import keras

__all__ = ["build"]

CHANNELS = 3
"""Channels of every network's input; grey levels are repeated."""

_SIZES = {
    "small_densenet": {"stem": 24, "growth": 16, "depth": 3, "blocks": 3},
    "tiny_densenet": {"stem": 8, "growth": 8, "depth": 1, "blocks": 1},
}


def input_facts(backbone: str) -> dict[str, Any]:
    """How an image becomes the input of a network, as a manifest records it.

    An image is resized to a square of integer grey levels, first its width, then its height, as
    Pillow does; repeated over the channels; and normalised, see `backbones.Normalisation`.

    Args:
        backbone: Its normalisation is used.

    Raises:
        PartError: There is no backbone of this name.
    """
    return {
        "pixels": {"colour": "grey", "black": 0, "white": 255},
        "resizing": {"method": "bilinear", "antialias": True, "keep_aspect_ratio": False},
        "channels": CHANNELS,
        "normalisation": backbones.normalisation(backbone).facts(),
    }


@dataclass(frozen=True)
class Network:
    """The network of a model's variables, without its number of classes.

    Attributes:
        backbone: See `build`.
        image_size: Side of the square input, pixels.
        hidden: Number of hidden units; see `build`.
    """

    backbone: str
    image_size: int
    hidden: int

    @property
    def normalisation(self) -> Normalisation:
        """Normalisation of the network's input."""
        return backbones.normalisation(self.backbone)

    def build(self, classes: int) -> keras.Model:
        """Build the uncompiled network with a head for a number of classes; random weights."""
        return build(self.backbone, classes, image_size=self.image_size, hidden=self.hidden)

    def facts(self) -> dict[str, Any]:
        """The network and its input as a manifest records them."""
        return {
            "backbone": self.backbone,
            "image_size": self.image_size,
            "hidden": self.hidden,
            "input": input_facts(self.backbone),
        }


@dataclass(frozen=True)
class SiteNetwork:
    """The network of a custom `Site`, whose input images are those that `Site.data` yields.

    Attributes:
        site: The site.
    """

    site: Site

    def build(self, classes: int) -> keras.Model:
        """Build the site's network, uncompiled, with a head for a number of classes."""
        return with_head(self.site.model(), classes)


AnyNetwork = Network | SiteNetwork


def network_of(checkpoint: Checkpoint) -> Network:
    """Read a model's network from its manifest.

    The hidden units are those of the variables. A manifest without `input`, which another program
    wrote, counts as one with that of `input_facts`.

    Args:
        checkpoint: The model.

    Raises:
        CheckpointError: The manifest names no network, one that this version cannot build, or an
            input that this version does not prepare.
    """
    manifest = checkpoint.manifest
    if lacking := [key for key in ("backbone", "image_size") if key not in manifest]:
        raise CheckpointError(
            f"the model's manifest needs {' and '.join(lacking)}, which the program that wrote "
            "it left out. Give the folder of its run, whose job has these settings."
        )
    backbone = manifest["backbone"]
    if backbone not in backbones.BACKBONES:
        raise CheckpointError(
            f"the model's network is {backbone!r}, which this version cannot build. Its own "
            "application can, or the version that trained it."
        )
    known = input_facts(backbone)
    if manifest.get("input", known) != known:
        raise CheckpointError(
            f"the model needs input {manifest['input']}; this version prepares {known}. Install "
            "the version that trained it."
        )
    kernel = checkpoint.variables.get("hidden/kernel", np.empty(0))
    return Network(backbone, int(manifest["image_size"]), (0, *kernel.shape)[-1])


def build(
    backbone: str, classes: int, *, image_size: int, hidden: int = 0, weights: str | None = None
) -> keras.Model:
    """Build an uncompiled network; its last layer is named "head".

    Its input is float32 (batch, image_size, image_size, 3), with `backbones.normalisation` applied.
    Its output are probabilities, float32 (batch, classes), also in mixed precision.

    Args:
        backbone: One of `backbones.BACKBONES`: a network of keras.applications, such as densenet121
            (7.0 million parameters); small_densenet (0.1 million), for CPUs and small images;
            tiny_densenet (1,500), to test whether a job runs; or one that an installed package
            offers, see `backbones.Backbone`.
        classes: Number of units of the head.
        image_size: Side of the square input, pixels.
        hidden: Number of units of a ReLU layer with dropout 0.3 between pooling and head. The
            papers' released code has 256. Default 0: no such layer, as in the papers' text.
        weights: Weights of the body: "imagenet" (downloaded by Keras, or part of the package that
            offers the backbone), or the path of a Keras weights file of the backbone without its
            top. Default None: random.

    Raises:
        PartError: There is no backbone of this name.
        ValueError: The network cannot be built with these arguments, or the weights cannot be
            loaded.

    Example:
        >>> build("tiny_densenet", classes=14, image_size=32).output_shape
        (None, 14)
    """
    import keras
    from keras import layers

    own = backbones.offered(backbone)
    if hidden not in HIDDEN_UNITS:
        raise ValueError(f"a network has 0 to {HIDDEN_UNITS[-1]} hidden units; got {hidden!r}.")
    shape = (image_size, image_size, 3)
    try:
        if backbone in APPLICATIONS:
            body = _application(backbone, shape, weights)
            if weights == "imagenet" and backbones.normalisation(backbone).by_variables:
                body = _with_factor_in_variance(body, _application(backbone, shape, None))
        else:
            body = own.build(shape) if own else _small_densenet(shape, **_SIZES[backbone])
            if weights is not None:
                load = own.weights.get(weights) if own else None
                load(body) if load else body.load_weights(weights)
    except Exception as error:  # Keras raises bare exceptions of many kinds here
        raise ValueError(
            f"{backbone} at {image_size} pixels with weights {weights!r} cannot be built: {error} "
            "Give the path of weights that Keras saved from this backbone without its top; where "
            "this machine cannot download, fetch them elsewhere."
        ) from error
    features = body.output
    if hidden:
        features = layers.Dense(hidden, activation="relu", name="hidden")(features)
        features = layers.Dropout(0.3, name="hidden_dropout")(features)
    # float32 in mixed precision, too: the probability of a rare class would be 0 in float16.
    head = layers.Dense(classes, activation="sigmoid", dtype="float32", name="head")
    return keras.Model(body.inputs, head(features), name=backbone)


def with_head(model: keras.Model, classes: int) -> keras.Model:
    """Replace the head of a network.

    Args:
        model: A network whose last layer is a Dense layer. It is not changed.
        classes: Number of units of the new head.

    Returns:
        A network that shares all other layers with `model`; the new head, with the same activation,
        has random weights.
    """
    import keras

    old = model.layers[-1]
    head = keras.layers.Dense(classes, activation=old.activation, dtype="float32", name="head")
    return keras.Model(model.input, head(old.input), name=model.name)


def _application(backbone: str, shape: tuple[int, int, int], weights: str | None) -> keras.Model:
    """Build a network of `keras.applications`; its variables have the same paths in every build."""
    import keras

    # Keras numbers layers without a name per process; clear_session restarts the numbers.
    policy = keras.config.dtype_policy()
    keras.backend.clear_session(free_memory=False)
    keras.config.set_dtype_policy(policy)  # clear_session resets it
    application = getattr(keras.applications, APPLICATIONS[backbone])
    return application(include_top=False, weights=weights, input_shape=shape, pooling="avg")


def _with_factor_in_variance(imagenet: keras.Model, plain: keras.Model) -> keras.Model:
    """Transfer the weights of Keras' EfficientNet for ImageNet to the one that sites build.

    The network that Keras builds with weights="imagenet" has an additional layer, which multiplies
    the normalised input by a factor. Sites build it without weights, and so without this layer. To
    get the same output, the normalisation's variance, a variable of the body, is divided by the
    factor's square.
    """
    from keras import layers

    plain.set_weights(imagenet.get_weights())
    (normalising,) = (one for one in plain.layers if isinstance(one, layers.Normalization))
    *_, multiplying = (one for one in imagenet.layers if isinstance(one, layers.Rescaling))
    normalising.adapt_variance.assign(normalising.adapt_variance / np.square(multiplying.scale))
    normalising.finalize_state()
    return plain


def _small_densenet(
    shape: tuple[int, int, int], *, stem: int, growth: int, depth: int, blocks: int
) -> keras.Model:
    """DenseNet's wiring (Huang et al., CVPR 2017) without bottlenecks, small enough for a CPU."""
    import keras
    from keras import layers

    inputs = keras.Input(shape)
    x = layers.Conv2D(stem, 5, strides=2, padding="same", use_bias=False, name="stem_conv")(inputs)
    x = layers.BatchNormalization(name="stem_bn")(x)
    x = layers.ReLU(name="stem_relu")(x)
    x = layers.MaxPooling2D(2, name="stem_pool")(x)
    for block in range(1, blocks + 1):
        for layer in range(1, depth + 1):
            name = f"block{block}_layer{layer}"
            y = layers.BatchNormalization(name=f"{name}_bn")(x)
            y = layers.ReLU(name=f"{name}_relu")(y)
            y = layers.Conv2D(growth, 3, padding="same", use_bias=False, name=f"{name}_conv")(y)
            x = layers.Concatenate(name=f"{name}_concat")([x, y])
        if block < blocks:
            x = layers.BatchNormalization(name=f"transition{block}_bn")(x)
            x = layers.ReLU(name=f"transition{block}_relu")(x)
            half = x.shape[-1] // 2
            x = layers.Conv2D(half, 1, use_bias=False, name=f"transition{block}_conv")(x)
            x = layers.AveragePooling2D(2, name=f"transition{block}_pool")(x)
    x = layers.BatchNormalization(name="final_bn")(x)
    x = layers.ReLU(name="final_relu")(x)
    x = layers.GlobalAveragePooling2D(name="final_pool")(x)
    return keras.Model(inputs, x)
