"""Feed grey images and labels to Keras: shuffled, augmented, normalised, batch by batch."""

import numpy as np
import tensorflow as tf

_MEAN = (0.485, 0.456, 0.406)  # of ImageNet, red green blue
_SD = (0.229, 0.224, 0.225)

_ROTATION = np.deg2rad(7)
_SHIFT = 0.05  # of the side
_ZOOM = 0.05
_BRIGHTNESS = 0.1  # of the range from black to white
_CONTRAST = 0.1


def dataset(
    images: np.ndarray,
    labels: np.ndarray,
    *,
    batch_size: int,
    rows: np.ndarray | None = None,
    shuffle_seed: int | None = None,
    augment: bool = False,
    seed: int = 0,
) -> tf.data.Dataset:
    """Build the dataset of one split.

    Pixels are scaled to [0, 1], repeated over three channels and normalised with the mean and
    standard deviation of ImageNet, as in the papers. Pixels stay uint8 until their batch is made.

    Augmentation rotates by up to 7 degrees, shifts by up to 5 % of the side, zooms by up to 5 % and
    jitters brightness and contrast by up to 10 %, each image on its own. It never mirrors: a
    horizontal flip would put the heart on the right, which in a chest radiograph is a finding
    (dextrocardia, or a collapsed lung pulling it over) and not a variant.

    Two datasets made with the same arguments give the same batches, bit for bit, epoch by epoch.

    Args:
        images: uint8, shape (n, side, side), or (m, side, side) with `rows`; may be memory-mapped.
        labels: float32, shape (n, classes); NaN goes through unchanged.
        batch_size: Images per batch; the last batch may be smaller.
        rows: Row of `images` for each row of `labels`, shape (n,), so that a few of many images
            need not be copied; omitted, image i belongs to row i of the labels.
        shuffle_seed: Every epoch in a new order that follows from this seed; None keeps the order.
        augment: Whether to augment, anew in every epoch.
        seed: Seed of the augmentation.

    Returns:
        Batches of (float32 (b, side, side, 3), float32 (b, classes)).

    Raises:
        ValueError: Images and labels differ in number, the images are not uint8 squares, or `rows`
            points outside of them.
    """
    labels = np.asarray(labels, dtype=np.float32)
    if images.dtype != np.uint8 or images.ndim != 3 or images.shape[1] != images.shape[2]:
        raise ValueError(
            f"images need to be uint8 (n, side, side); got {images.dtype} {images.shape}."
        )
    if rows is None:
        rows = np.arange(len(images))
    elif len(rows) and not 0 <= np.min(rows) <= np.max(rows) < len(images):
        raise ValueError(
            f"rows need to be from 0 to {len(images) - 1}, one image each; got {np.min(rows)} to "
            f"{np.max(rows)}."
        )
    if labels.ndim != 2 or len(labels) != len(rows):
        raise ValueError(
            f"labels need shape ({len(rows)}, classes), one row per image; got {labels.shape}."
        )
    side, classes = images.shape[1], labels.shape[1]

    def gather(chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return images[rows[chosen]], labels[chosen]

    def batch(chosen: tf.Tensor, noise: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        pixels, truth = tf.numpy_function(gather, [chosen], (tf.uint8, tf.float32), stateful=False)
        pixels = tf.ensure_shape(pixels, (None, side, side))
        if augment:
            pixels = _augment(pixels, noise)
        return _normalise(pixels), tf.ensure_shape(truth, (None, classes))

    order = tf.data.Dataset.range(len(rows))
    if shuffle_seed is not None:
        order = order.shuffle(max(len(rows), 1), seed=shuffle_seed, reshuffle_each_iteration=True)
    noise = tf.data.Dataset.random(seed=seed, rerandomize_each_iteration=True).batch(2)
    batches = tf.data.Dataset.zip((order.batch(batch_size), noise))
    return batches.map(batch, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)


def _normalise(pixels: tf.Tensor) -> tf.Tensor:
    """Turn uint8 (b, side, side) into float32 (b, side, side, 3)."""
    # There are 256 results; to look them up is several times faster than to compute each pixel's.
    levels = (tf.range(256, dtype=tf.float32)[:, None] / 255 - _MEAN) / _SD
    return tf.gather(levels, tf.cast(pixels, tf.int32))


def _augment(pixels: tf.Tensor, noise: tf.Tensor) -> tf.Tensor:
    """Move and relight each image of a uint8 batch (b, side, side) at random from the seed."""
    number, side = tf.shape(pixels)[0], pixels.shape[1]
    amplitudes = [_ROTATION, _SHIFT * side, _SHIFT * side, _ZOOM, 255 * _BRIGHTNESS, _CONTRAST]
    uniform = tf.random.stateless_uniform((number, len(amplitudes)), noise, minval=-1, maxval=1)
    angle, right, down, zoom, brightness, contrast = tf.unstack(uniform * amplitudes, axis=1)
    # Each pixel of the result looks up a place in the image: rotated and zoomed about the centre.
    centre = (side - 1) / 2
    cos, sin = (1 + zoom) * tf.cos(angle), (1 + zoom) * tf.sin(angle)
    none = tf.zeros_like(angle)
    transforms = tf.stack(
        [
            cos,
            -sin,
            centre - centre * cos + centre * sin + right,
            sin,
            cos,
            centre - centre * sin - centre * cos + down,
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
    brightness, contrast = (value[:, None, None, None] for value in (brightness, contrast))
    mean = tf.reduce_mean(moved, axis=(1, 2, 3), keepdims=True)
    relit = mean + (1 + contrast) * (moved - mean) + brightness
    return tf.cast(tf.round(tf.clip_by_value(relit, 0, 255)), tf.uint8)[..., 0]
