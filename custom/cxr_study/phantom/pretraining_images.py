"""Pictures of shapes and textures on which a backbone is pre-trained, in the place of ImageNet."""

from collections.abc import Callable

import numpy as np

from cxr_study.phantom.drawing.canvas import axes, bump, edge, smooth_noise, uniform

_BATCH = 32


def source_images(n: int, seed: int, size: int = 64) -> tuple[np.ndarray, np.ndarray]:
    """Draw pictures of simple things, none of them a chest.

    Place, scale, angle, contrast, brightness, background and noise are random. The categories are
    as equally frequent as n allows.

    Args:
        n: Number of pictures.
        seed: Another seed, other pictures.
        size: Pixels along an edge.

    Returns:
        Pictures (n, size, size), uint8, and for each the index of its category in
        `SOURCE_CATEGORIES`, (n,), int64.
    """
    order, *streams = np.random.default_rng(seed).spawn(1 + len(SOURCE_CATEGORIES))
    labels = order.permutation(np.arange(n) % len(SOURCE_CATEGORIES))
    pictures = np.empty((n, size, size), dtype=np.uint8)
    for category, (draw, rng) in enumerate(zip(_DRAWERS.values(), streams, strict=True)):
        rows = np.flatnonzero(labels == category)
        for start in range(0, len(rows), _BATCH):
            batch = rows[start : start + _BATCH]
            x, y = _plane(len(batch), size, rng)
            pictures[batch] = _develop(draw(x, y, rng), rng)
    return pictures, labels


def _plane(n: int, size: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Coordinates of a randomly placed, scaled and turned thing, each (n, size, size)."""
    x, y = axes(size)
    scale, angle = uniform(rng, n, 0.25, 0.6), uniform(rng, n, 0, 2 * np.pi)
    x, y = (x - uniform(rng, n, -0.4, 0.4)) / scale, (y - uniform(rng, n, -0.4, 0.4)) / scale
    return np.cos(angle) * x + np.sin(angle) * y, np.cos(angle) * y - np.sin(angle) * x


def _develop(shape: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Put a shape with values in [0, 1] before a random background and make it an 8-bit picture."""
    n, size = len(shape), shape.shape[-1]
    ground = uniform(rng, n, 0.25, 0.75) + uniform(rng, n, 0, 0.1) * smooth_noise(rng, n, size, 3)
    ground += uniform(rng, n, 0, 0.06) * smooth_noise(rng, n, size, 16)
    contrast = uniform(rng, n, 0.2, 0.5) * np.where(ground.mean((1, 2), keepdims=True) < 0.5, 1, -1)
    grain = uniform(rng, n, 0.01, 0.06) * rng.standard_normal(shape.shape, dtype=np.float32)
    return (np.clip(ground + contrast * shape + grain, 0, 1) * 255).astype(np.uint8)


def _radius(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.sqrt(np.square(x) + np.square(y))


def _disc(x: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return edge(1 - _radius(x, y * uniform(rng, len(x), 1, 1.5)), 0.1)


def _ring(x: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return edge(uniform(rng, len(x), 0.12, 0.25) - np.abs(_radius(x, y) - 0.9), 0.1)


def _square(x: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return edge(0.85 - np.maximum(np.abs(x), np.abs(y) * uniform(rng, len(x), 1, 1.7)), 0.1)


def _triangle(x: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    sides = np.maximum(np.abs(x) * uniform(rng, len(x), 0.8, 1.0) + 0.5 * y, -y)
    return edge(0.6 - sides, 0.1)


def _cross(x: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    narrow, wide = np.minimum(np.abs(x), np.abs(y)), np.maximum(np.abs(x), np.abs(y))
    return edge(uniform(rng, len(x), 0.15, 0.28) - narrow, 0.1) * edge(1.1 - wide, 0.1)


def _arc(x: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return _ring(x, y, rng) * edge(y - uniform(rng, len(x), -0.2, 0.3), 0.1)


def _star(x: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    rays = np.cos(5 * np.arctan2(y, x))
    return edge(0.7 + uniform(rng, len(x), 0.25, 0.4) * rays - _radius(x, y), 0.1)


def _stripes(x: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return edge(np.sin(x * uniform(rng, len(x), 4, 9)), 1.0)


def _checkerboard(x: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    pitch = uniform(rng, len(x), 3, 6)
    return edge(np.sin(x * pitch) * np.sin(y * pitch), 0.4)


def _dots(x: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    pitch = uniform(rng, len(x), 4, 7)
    return edge(np.cos(x * pitch) + np.cos(y * pitch) - 0.9, 0.6)


def _waves(x: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return edge(np.sin(_radius(x, y) * uniform(rng, len(x), 6, 10)), 1.0)


def _blobs(x: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return edge(smooth_noise(rng, len(x), x.shape[-1], 5) - 0.4, 0.4)


def _net(x: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return bump(smooth_noise(rng, len(x), x.shape[-1], 7), 0.2)


def _ramp(x: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return edge(x, uniform(rng, len(x), 2, 5))


_Drawer = Callable[[np.ndarray, np.ndarray, np.random.Generator], np.ndarray]
_DRAWERS: dict[str, _Drawer] = {
    "disc": _disc,
    "ring": _ring,
    "square": _square,
    "triangle": _triangle,
    "cross": _cross,
    "arc": _arc,
    "star": _star,
    "stripes": _stripes,
    "checkerboard": _checkerboard,
    "dots": _dots,
    "waves": _waves,
    "blobs": _blobs,
    "net": _net,
    "ramp": _ramp,
}
SOURCE_CATEGORIES = tuple(_DRAWERS)
