"""Datasets for Keras: shuffled, augmented and normalised batches, reproducible bit for bit."""

from __future__ import annotations

from itertools import count

import numpy as np
import tensorflow as tf

from cxr_study.training.augmentation import AugmentationRanges, augment, augmentation_ranges
from cxr_study.training.backbones import IMAGENET, Normalisation

__all__ = ["dataset"]


def dataset(
    images: np.ndarray,
    labels: np.ndarray,
    *,
    batch_size: int,
    rows: np.ndarray | None = None,
    shuffle_seed: int | None = None,
    augmentation: str = "none",
    seed: int = 0,
    first_pass: int = 0,
    normalisation: Normalisation = IMAGENET,
) -> tf.data.Dataset:
    """Build the dataset of one split.

    Images stay uint8 until their batch is made. Grey levels are repeated over three channels.

    Order and augmentation of a pass depend only on the seeds and the number of the pass. The first
    iteration over the dataset is pass `first_pass`, and each iteration that is started, complete or
    not, increases the number by one. So training can continue where another process stopped.

    Args:
        images: uint8, shape (n, side, side), or (n, side, side, 3) in colour; may be memory-mapped.
            With `rows`, any number of images.
        labels: float32, shape (n, classes); NaN (not known) is passed on.
        batch_size: Images per batch; the last batch may be smaller.
        rows: Row of `images` for each row of `labels`, shape (n,), so that a subset need not be
            copied. Default None: row i of both belong together.
        shuffle_seed: Seed of a new order in every pass, 0 or more. Default None: no shuffling.
        augmentation: One of `augmentation.AUGMENTATIONS`, different in every pass. Default "none".
        seed: Seed of the augmentation, 0 or more. Default 0.
        first_pass: Number of the first iteration's pass. Default 0.
        normalisation: Default: mean and standard deviation of ImageNet, as in the papers.

    Returns:
        Batches of images, float32 (b, side, side, 3), and labels, float32 (b, classes).

    Raises:
        ValueError: An argument has another shape or dtype, or the augmentation is unknown.

    Example:
        >>> images, labels = np.zeros((5, 8, 8), np.uint8), np.ones((5, 2), np.float32)
        >>> [tuple(x.shape) for x, y in dataset(images, labels, batch_size=4)]
        [(4, 8, 8, 3), (1, 8, 8, 3)]
    """
    labels = np.asarray(labels, dtype=np.float32)
    rows = np.arange(len(images)) if rows is None else np.asarray(rows)
    _check(images, labels, rows)
    most = augmentation_ranges(augmentation)
    shape, classes = images.shape[1:], labels.shape[1]

    def gather(chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return images[rows[chosen]], labels[chosen]

    def batch(chosen: tf.Tensor, noise: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        pixels, truth = tf.numpy_function(gather, [chosen], (tf.uint8, tf.float32), stateful=False)
        pixels = tf.ensure_shape(pixels, (None, *shape))
        if most != AugmentationRanges():
            pixels = augment(pixels, noise, most)
        return normalised(pixels, normalisation), tf.ensure_shape(truth, (None, classes))

    chosen = _passes(len(rows), batch_size, shuffle_seed, seed, first_pass)
    return chosen.map(batch, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)


def _passes(
    images: int, batch_size: int, shuffle_seed: int | None, seed: int, first_pass: int
) -> tf.data.Dataset:
    """Dataset with the indices of each batch's images, and the two integers that seed its noise.

    Each iteration is the next pass, from `first_pass` on.
    """
    passes = count(first_pass)
    batches = -(-images // batch_size)

    def draw(_: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        number = next(passes)
        order = np.arange(images)
        if shuffle_seed is not None:
            order = np.random.default_rng([shuffle_seed, number]).permutation(images)
        return order, np.random.default_rng([seed, number, 1]).integers(2**63, size=(batches, 2))

    def a_pass(element: tf.Tensor) -> tf.data.Dataset:
        # Called once per iteration. With stateful=True TensorFlow would run all later steps in one
        # thread. Without it the function is not folded into a constant, because it has an argument.
        order, noise = tf.numpy_function(draw, [element], (tf.int64, tf.int64), stateful=False)
        slices = tf.data.Dataset.from_tensor_slices
        order, noise = tf.ensure_shape(order, (images,)), tf.ensure_shape(noise, (batches, 2))
        return tf.data.Dataset.zip((slices(order).batch(batch_size), slices(noise)))

    known = tf.data.experimental.assert_cardinality(batches)
    return tf.data.Dataset.range(1).flat_map(a_pass).apply(known)


def _check(images: np.ndarray, labels: np.ndarray, rows: np.ndarray) -> None:
    """Check the shapes and dtypes of `dataset`'s arguments."""
    shape = tuple(images.shape)
    square = shape[1:2] * 2
    if images.dtype != np.uint8 or len(shape) < 3 or shape[1:] not in (square, (*square, 3)):
        raise ValueError(
            "images need to be uint8 (n, side, side), or (n, side, side, 3) in colour; got "
            f"{images.dtype} {images.shape}."
        )
    if len(rows) and not 0 <= np.min(rows) <= np.max(rows) < len(images):
        raise ValueError(
            f"rows need to be from 0 to {len(images) - 1}, one image each; got {np.min(rows)} to "
            f"{np.max(rows)}."
        )
    if labels.ndim != 2 or len(labels) != len(rows):
        raise ValueError(
            f"labels need shape ({len(rows)}, classes), one row per image; got {labels.shape}."
        )


def normalised(pixels: tf.Tensor, how: Normalisation = IMAGENET) -> tf.Tensor:
    """Normalise images, and repeat grey levels over three channels.

    Args:
        pixels: uint8 (b, side, side), or (b, side, side, 3) in colour, red first.
        how: Normalisation. Default: ImageNet's.

    Returns:
        float32 (b, side, side, 3).
    """
    if len(pixels.shape) == 4:
        colours = tf.cast(pixels[..., ::-1] if how.blue_first else pixels, tf.float32)
        return (colours / how.scale - how.mean) / how.sd
    # A table of the 256 results is several times faster than computing each pixel's.
    levels = (tf.range(256, dtype=tf.float32)[:, None] / how.scale - how.mean) / how.sd
    return tf.gather(levels, tf.cast(pixels, tf.int32))
