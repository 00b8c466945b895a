"""Random changes to training images, each image on its own."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from cxr_study.training.augmentation_ranges import Amplitudes


def augment(pixels: tf.Tensor, noise: tf.Tensor, most: Amplitudes) -> tf.Tensor:
    """Turn, move, mirror and relight each image at random; what comes from outside is black.

    Args:
        pixels: uint8 (b, side, side).
        noise: Seed, two integers; the result follows from it.
        most: By how much at most.

    Returns:
        uint8 (b, side, side).
    """
    number, side = tf.shape(pixels)[0], pixels.shape[1]
    uniform = tf.random.stateless_uniform((number, 7), noise, minval=-1, maxval=1)
    rotation, right, down, zoom, brightness, contrast, flip = tf.unstack(uniform, axis=1)
    angle = rotation * np.deg2rad(most.rotation)
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
        images=tf.cast(pixels, tf.float32)[..., None],
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
    return tf.cast(tf.round(tf.clip_by_value(relit, 0, 255)), tf.uint8)[..., 0]
