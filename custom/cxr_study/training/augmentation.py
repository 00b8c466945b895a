"""Random changes to training images; names and ranges can be imported without TensorFlow."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import tensorflow as tf


@dataclass(frozen=True)
class AugmentationRanges:
    """By how much images are changed at most, either way; 0: not at all.

    Attributes:
        rotation: Degrees, about the centre.
        shift: Of the side, to the right and down.
        zoom: 0.5: from half to one and a half times as much of the chest in the picture.
        brightness: Of the range from black to white.
        contrast: Of the distance of each pixel from the image's mean.
        flip: Share of the images that are mirrored.
    """

    rotation: float = 0.0
    shift: float = 0.0
    zoom: float = 0.0
    brightness: float = 0.0
    contrast: float = 0.0
    flip: float = 0.0


AUGMENTATIONS = {
    "none": AugmentationRanges(),
    "radiology": AugmentationRanges(
        rotation=7, shift=0.05, zoom=0.05, brightness=0.1, contrast=0.1
    ),
    "paper": AugmentationRanges(rotation=72, zoom=0.5, contrast=0.75, flip=0.5),
}
"""Name -> ranges.

`radiology` is what a change of positioning and exposure does. It never mirrors: a heart on the
right is a finding (dextrocardia, or a collapsed lung pulling it over). `paper` repeats the released
code of Kulkarni et al., ML4H 2024, whose text gives no ranges: it mirrors, turns patients on their
side and cuts the lungs off, far beyond what a radiology department makes.
"""


def augmentation_ranges(augmentation: str) -> AugmentationRanges:
    """Ranges of an augmentation.

    Raises:
        ValueError: It is none of `AUGMENTATIONS`.
    """
    if augmentation not in AUGMENTATIONS:
        raise ValueError(
            f"augmentation must be one of {tuple(AUGMENTATIONS)}; got {augmentation!r}."
        )
    return AUGMENTATIONS[augmentation]


def augment(pixels: tf.Tensor, noise: tf.Tensor, most: AugmentationRanges) -> tf.Tensor:
    """Turn, move, mirror and relight uint8 (b, side, side[, 3]) at random; the outside is black.

    The result depends on `noise`, two integers, alone; `most` limits the changes.
    """
    import tensorflow as tf

    number, side, coloured = tf.shape(pixels)[0], pixels.shape[1], len(pixels.shape) == 4
    uniform = tf.random.stateless_uniform((number, 7), noise, minval=-1, maxval=1)
    rotation, right, down, zoom, brightness, contrast, flip = tf.unstack(uniform, axis=1)
    angle = rotation * math.radians(most.rotation)
    # Each pixel of the result looks up a place in the image: rotated and zoomed about the centre.
    mirror = tf.where(flip < 2 * most.flip - 1, -1.0, 1.0)
    scale = 1 + zoom * most.zoom
    cos, sin = scale * tf.cos(angle), scale * tf.sin(angle)
    centre = (side - 1) / 2
    none = tf.zeros_like(angle)
    transforms = tf.stack(
        [
            mirror * cos,
            -sin,
            centre - centre * mirror * cos + centre * sin + most.shift * side * right,
            mirror * sin,
            cos,
            centre - centre * mirror * sin - centre * cos + most.shift * side * down,
            none,
            none,
        ],
        axis=1,
    )
    moved = tf.raw_ops.ImageProjectiveTransformV3(
        images=tf.cast(pixels if coloured else pixels[..., None], tf.float32),
        transforms=transforms,
        output_shape=(side, side),
        fill_value=0.0,
        interpolation="BILINEAR",
        fill_mode="CONSTANT",
    )
    lighter = (255 * most.brightness * brightness)[:, None, None, None]
    steeper = (1 + most.contrast * contrast)[:, None, None, None]
    mean = tf.reduce_mean(moved, axis=(1, 2, 3), keepdims=True)
    relit = mean + steeper * (moved - mean) + lighter
    whole = tf.cast(tf.round(tf.clip_by_value(relit, 0, 255)), tf.uint8)
    return whole if coloured else whole[..., 0]
