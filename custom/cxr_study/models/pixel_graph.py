"""Resizing and normalisation as part of a Keras model, in operations that every runtime has.

The result equals Pillow's bilinear resizing with antialiasing bit for bit, in Keras, TensorFlow and
ONNX, because all intermediate values are integers. (The resize operations of these libraries differ
from Pillow's.) For a network of 64 pixels or more, 32-bit integers suffice for images of up to
32,000 pixels a side.
"""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
from keras import ops

from cxr_study.models import OUTPUT
from cxr_study.training.backbones import IMAGENET, Normalisation
from cxr_study.training.network import CHANNELS

PIXELS = "pixels"
"""Name of the input: one grey image per row, shape (images, height, width), 0 black to 255 white;
float32, in Keras and TensorFlow also uint8."""

_STEPS = (12, 5, 5)  # bits of a weight that each step of the long division yields
_BITS = sum(_STEPS)  # fractional bits of a weight, as in Pillow for 8-bit images
_LOW = 6  # low bits of a weight that are multiplied separately: float32 is exact only below 2**24


def with_pixel_input(network: keras.Model, how: Normalisation = IMAGENET) -> keras.Model:
    """Prepend resizing and normalisation to a network.

    Args:
        network: Uncompiled, from normalised images (b, side, side, 3) to probabilities (b,
            classes).
        how: Normalisation of the network's input. Default: ImageNet's.

    Returns:
        A model from the input `PIXELS` to the output `OUTPUT`, which contains `network` as one
        layer.
    """
    pixels = keras.Input((None, None), name=PIXELS)
    side = network.input_shape[1]
    probabilities = network(_normalised(_resized(_rounded(pixels), side), how))
    return keras.Model(pixels, {OUTPUT: probabilities}, name="pixels_to_probabilities")


def _rounded(pixels: Any) -> Any:
    """Grey levels rounded to integers from 0 to 255, float32; those of uint8 are unchanged."""
    return ops.clip(ops.floor(pixels + 0.5), 0, 255)


def _normalised(pixels: Any, how: Normalisation) -> Any:
    """Normalise integer grey levels (b, side, side), repeated over channels: (b, side, side, 3)."""
    grey = ops.expand_dims(pixels, 3)
    colours = keras.layers.Concatenate(name="channels")([grey] * CHANNELS)
    scale = [1 / (how.scale * sd) for sd in how.sd]
    offset = [-mean / sd for mean, sd in zip(how.mean, how.sd, strict=True)]
    return keras.layers.Rescaling(scale, offset, name="normalisation")(colours)


def _resized(pixels: Any, side: int) -> Any:
    """Resize (b, height, width) to (b, side, side): first the width, then the height, as Pillow."""
    columns = _weights(ops.ones_like(ops.max(pixels, axis=1)), side)
    rows = _weights(ops.ones_like(ops.max(pixels, axis=2)), side)
    narrow = _weighted_sums(pixels, columns)
    return ops.transpose(_weighted_sums(ops.transpose(narrow, (0, 2, 1)), rows), (0, 2, 1))


def _weights(line: Any, side: int) -> Any:
    """Weight of each pixel of a line in each pixel of the resized line, in units of 2**-22.

    The weights are a triangle around the centre of the new pixel. Its half-width is the number of
    old pixels per new pixel, at least 1. Weights are normalised and rounded.

    Args:
        line: Ones, shape (b, n); only the shape is used.
        side: Length of the resized line.

    Returns:
        int32, shape (b, side, n).
    """
    # The ONNX converter makes an input of every tensor that is not computed from another one. So
    # constants are NumPy arrays, on the right of operators.
    j = ops.cast(ops.cumsum(line, axis=1), "int32")  # 1 to n
    n = ops.expand_dims(ops.max(j, axis=1, keepdims=True), 1)
    j = ops.expand_dims(j, 1)
    centres = 2 * np.arange(side, dtype=np.int32)[:, None] + 1
    apart = ops.absolute((j * 2 - 1) * side - n * centres)
    weight = ops.maximum(ops.maximum(n, side) * 2 - apart, 0)
    total = ops.sum(weight, axis=2, keepdims=True)
    # 2**_BITS * weight / total, rounded, by long division in steps that do not exceed 32 bits.
    quotient = digit = weight // total
    rest = weight
    for bits in _STEPS:
        rest = (rest - digit * total) * 2**bits
        digit = rest // total
        quotient = quotient * 2**bits + digit
    return quotient + (rest - digit * total + total // 2) // total


def _weighted_sums(lines: Any, weights: Any) -> Any:
    """Resize lines of integer grey levels.

    Args:
        lines: float32, shape (b, r, n).
        weights: As from `_weights`, shape (b, side, n).

    Returns:
        Integer grey levels, float32, shape (b, r, side).
    """
    weights = ops.transpose(weights, (0, 2, 1))
    high = ops.matmul(lines, ops.cast(weights // 2**_LOW, "float32"))
    low = ops.matmul(lines, ops.cast(weights % 2**_LOW, "float32"))
    sums = ops.cast(high, "int32") * 2**_LOW + ops.cast(low, "int32")
    levels = (sums + 2 ** (_BITS - 1)) // 2**_BITS
    return ops.cast(ops.clip(levels, 0, 255), "float32")
