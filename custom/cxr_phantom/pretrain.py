"""Pre-train the small DenseNet on pictures of drawn shapes, as a stand-in for ImageNet."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

from cxr_phantom.drawing.canvas import axes, bump, edge, smooth_noise, uniform
from cxr_study.common import progress
from surgical_aggregation.checkpoints.checkpoint import Checkpoint, save

IMAGES = 4000
EPOCHS = 6
_BATCH = 32  # pictures drawn at once


def pretrained_body(
    *, images: int = IMAGES, epochs: int = EPOCHS, size: int = 64, seed: int = 0
) -> Checkpoint:
    """Train a small DenseNet to classify `source_images`, and keep its body.

    Args:
        images: Number of pictures to train on; a tenth as many measure the accuracy.
        epochs: Number of passes.
        size: Side of the pictures, pixels.
        seed: Of pictures and order.

    Returns:
        The body; its manifest records how it was made, and its accuracy on unseen pictures.
    """
    import keras

    from cxr_study.training.input_pipeline import dataset
    from cxr_study.training.network import Network, build
    from surgical_aggregation.site.contract.architecture import initial_body

    pictures, categories = source_images(images + images // 10, seed=seed, size=size)
    wanted = np.eye(len(SOURCE_CATEGORIES), dtype=np.float32)[categories]
    train = dataset(pictures[:images], wanted[:images], batch_size=64, shuffle_seed=seed)
    unseen = dataset(pictures[images:], wanted[images:], batch_size=64)
    model = build("small_densenet", len(SOURCE_CATEGORIES), image_size=size)
    softmax = keras.Model(
        model.inputs,
        keras.layers.Dense(len(SOURCE_CATEGORIES), activation="softmax")(
            model.get_layer("head").input
        ),
    )
    softmax.compile(
        keras.optimizers.Adam(2e-3), loss="categorical_crossentropy", metrics=["accuracy"]
    )
    with progress.bar("pre-training epochs") as report:
        count = keras.callbacks.LambdaCallback(on_epoch_end=lambda e, logs: report(e + 1, epochs))
        softmax.fit(train, epochs=epochs, shuffle=False, verbose=0, callbacks=[count])
    return initial_body(
        model,
        **Network("small_densenet", size, hidden=0).facts(),
        weights="source pictures",
        source_accuracy=float(softmax.evaluate(unseen, verbose=0, return_dict=True)["accuracy"]),
        seed=seed,
    )


def source_images(n: int, seed: int, size: int = 64) -> tuple[np.ndarray, np.ndarray]:
    """Draw simple shapes, none of them a chest, with random place, scale, angle and contrast.

    Args:
        n: Number of pictures.
        seed: Of the pictures.
        size: Side of the pictures, pixels.

    Returns:
        Pictures (n, size, size), uint8, and the index of each one's category in
        `SOURCE_CATEGORIES`, (n,), int64; categories are about equally frequent.
    """
    order, *streams = np.random.default_rng(seed).spawn(1 + len(SOURCE_CATEGORIES))
    labels = order.permutation(np.arange(n) % len(SOURCE_CATEGORIES))
    pictures = np.empty((n, size, size), dtype=np.uint8)
    for category, (draw, rng) in enumerate(zip(_DRAWERS.values(), streams, strict=True)):
        rows = np.flatnonzero(labels == category)
        for start in range(0, len(rows), _BATCH):
            batch = rows[start : start + _BATCH]
            pictures[batch] = _develop(draw(_Things(len(batch), size, rng)), rng)
    return pictures, labels


class _Things:
    """Randomly placed, scaled and turned things: coordinates x and y, each (n, size, size)."""

    def __init__(self, n: int, size: int, rng: np.random.Generator):
        self.rng = rng
        self.shape = (n, size)
        x, y = axes(size)
        scale, angle = self.between(0.25, 0.6), self.between(0, 2 * np.pi)
        x, y = (x - self.between(-0.4, 0.4)) / scale, (y - self.between(-0.4, 0.4)) / scale
        self.x = np.cos(angle) * x + np.sin(angle) * y
        self.y = np.cos(angle) * y - np.sin(angle) * x

    def between(self, low: float, high: float) -> np.ndarray:
        return uniform(self.rng, self.shape[0], low, high)

    def noise(self, cells: int) -> np.ndarray:
        return smooth_noise(self.rng, *self.shape, cells)


def _develop(shape: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw a shape with values in [0, 1] on a random background as an 8-bit picture."""
    n, size = len(shape), shape.shape[-1]
    ground = uniform(rng, n, 0.25, 0.75) + uniform(rng, n, 0, 0.1) * smooth_noise(rng, n, size, 3)
    ground += uniform(rng, n, 0, 0.06) * smooth_noise(rng, n, size, 16)
    contrast = uniform(rng, n, 0.2, 0.5) * np.where(ground.mean((1, 2), keepdims=True) < 0.5, 1, -1)
    grain = uniform(rng, n, 0.01, 0.06) * rng.standard_normal(shape.shape, dtype=np.float32)
    return (np.clip(ground + contrast * shape + grain, 0, 1) * 255).astype(np.uint8)


def _radius(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.sqrt(np.square(x) + np.square(y))


def _ring(t: _Things) -> np.ndarray:
    return edge(t.between(0.12, 0.25) - np.abs(_radius(t.x, t.y) - 0.9), 0.1)


def _triangle(t: _Things) -> np.ndarray:
    return edge(0.6 - np.maximum(np.abs(t.x) * t.between(0.8, 1.0) + 0.5 * t.y, -t.y), 0.1)


def _cross(t: _Things) -> np.ndarray:
    narrow, wide = np.minimum(np.abs(t.x), np.abs(t.y)), np.maximum(np.abs(t.x), np.abs(t.y))
    return edge(t.between(0.15, 0.28) - narrow, 0.1) * edge(1.1 - wide, 0.1)


def _star(t: _Things) -> np.ndarray:
    rays = np.cos(5 * np.arctan2(t.y, t.x))
    return edge(0.7 + t.between(0.25, 0.4) * rays - _radius(t.x, t.y), 0.1)


def _checkerboard(t: _Things) -> np.ndarray:
    pitch = t.between(3, 6)
    return edge(np.sin(t.x * pitch) * np.sin(t.y * pitch), 0.4)


def _dots(t: _Things) -> np.ndarray:
    pitch = t.between(4, 7)
    return edge(np.cos(t.x * pitch) + np.cos(t.y * pitch) - 0.9, 0.6)


_DRAWERS: dict[str, Callable[[_Things], np.ndarray]] = {
    "disc": lambda t: edge(1 - _radius(t.x, t.y * t.between(1, 1.5)), 0.1),
    "ring": _ring,
    "square": lambda t: edge(0.85 - np.maximum(np.abs(t.x), np.abs(t.y) * t.between(1, 1.7)), 0.1),
    "triangle": _triangle,
    "cross": _cross,
    "arc": lambda t: _ring(t) * edge(t.y - t.between(-0.2, 0.3), 0.1),
    "star": _star,
    "stripes": lambda t: edge(np.sin(t.x * t.between(4, 9)), 1.0),
    "checkerboard": _checkerboard,
    "dots": _dots,
    "waves": lambda t: edge(np.sin(_radius(t.x, t.y) * t.between(6, 10)), 1.0),
    "blobs": lambda t: edge(t.noise(5) - 0.4, 0.4),
    "net": lambda t: bump(t.noise(7), 0.2),
    "ramp": lambda t: edge(t.x, t.between(2, 5)),
}
SOURCE_CATEGORIES = tuple(_DRAWERS)
"""Names of the shapes."""


if __name__ == "__main__":
    from surgical_aggregation.site.training.tensorflow_setup import configure, cores

    configure(threads=cores(), seed=0)
    save(pretrained_body(), Path(sys.argv[1]))
