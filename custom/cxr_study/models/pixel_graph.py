"""Pixels of any size to the network's input, as operations that every runtime has.

Whole numbers throughout, so that the result is Pillow's bilinear resizing with antialiasing bit for
bit, in Keras, TensorFlow and ONNX alike; none of these resizes like Pillow by itself. For a network
of 64 pixels or more they hold images of up to 32,000 pixels a side.
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

_STEPS = (12, 5, 5)  # bits of a weight's fraction, as they are found
_BITS = sum(_STEPS)  # Pillow's for 8-bit images
_LOW = 6  # of them are weighed apart: products of floats are whole numbers only below 2**24


def behind_pixels(network: keras.Model, how: Normalisation = IMAGENET) -> keras.Model:
    """Put an uncompiled network behind a pixel input.

    Args:
        network: From normalised images (b, side, side, 3) to probabilities (b, classes).
        how: They are normalised. Default: as ImageNet.

    Returns:
        From `PIXELS` to `OUTPUT`.
    """
    pixels = keras.Input((None, None), name=PIXELS)
    side = network.input_shape[1]
    probabilities = network(_normalised(_resized(_whole(pixels), side), how))
    return keras.Model(pixels, {OUTPUT: probabilities}, name="pixels_to_probabilities")


def _whole(pixels: Any) -> Any:
    """Grey levels as whole float32; uint8 ones stay as they are."""
    return ops.clip(ops.floor(pixels + 0.5), 0, 255)


def _normalised(pixels: Any, how: Normalisation) -> Any:
    """Whole grey levels (b, side, side) to (b, side, side, 3)."""
    grey = ops.expand_dims(pixels, 3)
    colours = keras.layers.Concatenate(name="channels")([grey] * CHANNELS)
    scale = [1 / (how.scale * sd) for sd in how.sd]
    offset = [-mean / sd for mean, sd in zip(how.mean, how.sd, strict=True)]
    return keras.layers.Rescaling(scale, offset, name="normalisation")(colours)


def _resized(pixels: Any, side: int) -> Any:
    """Resize (b, height, width) to (b, side, side): columns first, as Pillow does."""
    columns = _weights(ops.ones_like(ops.max(pixels, axis=1)), side)
    rows = _weights(ops.ones_like(ops.max(pixels, axis=2)), side)
    narrow = _weighed(pixels, columns)
    return ops.transpose(_weighed(ops.transpose(narrow, (0, 2, 1)), rows), (0, 2, 1))


def _weights(line: Any, side: int) -> Any:
    """How much each pixel of a line counts in each of `side` pixels, in units of 2**-22.

    A triangle around the centre of the new pixel, as wide as it covers old ones (never less than
    one to each side), normalised and rounded.

    Args:
        line: Ones, shape (b, n).
        side: Length that the line gets.

    Returns:
        int32, shape (b, side, n).
    """
    # The ONNX converter makes an input of every tensor that comes from no other: hence NumPy's, and
    # constants stand on the right.
    j = ops.cast(ops.cumsum(line, axis=1), "int32")  # 1 to n
    n = ops.expand_dims(ops.max(j, axis=1, keepdims=True), 1)
    j = ops.expand_dims(j, 1)
    centres = 2 * np.arange(side, dtype=np.int32)[:, None] + 1
    apart = ops.absolute((j * 2 - 1) * side - n * centres)
    weight = ops.maximum(ops.maximum(n, side) * 2 - apart, 0)
    total = ops.sum(weight, axis=2, keepdims=True)
    # 2**_BITS * weight / total, rounded: by long division, each step of which stays within 32 bits.
    quotient = digit = weight // total
    rest = weight
    for bits in _STEPS:
        rest = (rest - digit * total) * 2**bits
        digit = rest // total
        quotient = quotient * 2**bits + digit
    return quotient + (rest - digit * total + total // 2) // total


def _weighed(lines: Any, weights: Any) -> Any:
    """Lines (b, r, n) of whole grey levels by weights (b, side, n): whole levels (b, r, side)."""
    weights = ops.transpose(weights, (0, 2, 1))
    high = ops.matmul(lines, ops.cast(weights // 2**_LOW, "float32"))
    low = ops.matmul(lines, ops.cast(weights % 2**_LOW, "float32"))
    sums = ops.cast(high, "int32") * 2**_LOW + ops.cast(low, "int32")
    levels = (sums + 2 ** (_BITS - 1)) // 2**_BITS
    return ops.cast(ops.clip(levels, 0, 255), "float32")
