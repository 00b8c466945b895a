"""Random augmentation of training images. Names and ranges can be imported without TensorFlow."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import tensorflow as tf


@dataclass(frozen=True)
class AugmentationRanges:
    """Largest change of an image in either direction; 0: no change.

    Changes are drawn uniformly from [-range, range], independently for each image.

    Attributes:
        rotation: Degrees, about the centre.
        shift: Horizontally and vertically, as a fraction of the side.
        zoom: Change of the visible field of view, as a fraction; with 0.5 its side is from half to
            one and a half times that of the original.
        brightness: Added grey level, as a fraction of the range from black to white.
        contrast: Change of the distance of each pixel from the image's mean, as a fraction.
        flip: Probability that an image is mirrored horizontally.
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

`radiology` imitates differences of positioning and exposure. It never mirrors images: a heart on
the right is a finding (dextrocardia, or displacement by a collapsed lung). `paper` has the ranges
of the released code of Kulkarni et al., ML4H 2024, whose text gives none. It mirrors images,
rotates them by up to 72 degrees and cuts off parts of the lungs, which does not occur in clinical
images.
"""


def augmentation_ranges(augmentation: str) -> AugmentationRanges:
    """Ranges of an augmentation by its name.

    Raises:
        ValueError: The name is none of `AUGMENTATIONS`.

    Example:
        >>> augmentation_ranges("radiology").rotation
        7
    """
    if augmentation not in AUGMENTATIONS:
        raise ValueError(
            f"augmentation must be one of {tuple(AUGMENTATIONS)}; got {augmentation!r}."
        )
    return AUGMENTATIONS[augmentation]


def augment(pixels: tf.Tensor, noise: tf.Tensor, most: AugmentationRanges) -> tf.Tensor:
    """Rotate, shift, zoom, mirror, brighten and change the contrast of images at random.

    Geometry is changed by one bilinear interpolation; what is outside of the image is black.

    Args:
        pixels: uint8 (b, side, side), or (b, side, side, 3) in colour.
        noise: Seed, two integers. Equal seeds give equal changes.
        most: Ranges of the changes.

    Returns:
        uint8, same shape.
    """
    import tensorflow as tf

    number, side, coloured = tf.shape(pixels)[0], pixels.shape[1], len(pixels.shape) == 4
    uniform = tf.random.stateless_uniform((number, 7), noise, minval=-1, maxval=1)
    rotation, right, down, zoom, brightness, contrast, flip = tf.unstack(uniform, axis=1)
    angle = rotation * math.radians(most.rotation)
    # The transform maps each pixel of the result to a position in the image.
    mirror = tf.where(flip < 2 * most.flip - 1, -1.0, 1.0)
    scale = 1 + zoom * most.zoom
    cos, sin = scale * tf.cos(angle), scale * tf.sin(angle)
    centre = (side - 1) / 2
    zero = tf.zeros_like(angle)
    transforms = tf.stack(
        [
            mirror * cos,
            -sin,
            centre - centre * mirror * cos + centre * sin + most.shift * side * right,
            mirror * sin,
            cos,
            centre - centre * mirror * sin - centre * cos + most.shift * side * down,
            zero,
            zero,
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
    offset = (255 * most.brightness * brightness)[:, None, None, None]
    factor = (1 + most.contrast * contrast)[:, None, None, None]
    mean = tf.reduce_mean(moved, axis=(1, 2, 3), keepdims=True)
    changed = mean + factor * (moved - mean) + offset
    levels = tf.cast(tf.round(tf.clip_by_value(changed, 0, 255)), tf.uint8)
    return levels if coloured else levels[..., 0]
