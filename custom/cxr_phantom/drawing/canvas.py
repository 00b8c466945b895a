"""Drawing primitives on a batch of pictures.

A picture spans [-1, 1] in both directions, x to the right and y downwards, whatever its size in
pixels. Batches of pictures are float32 of shape (n, size, size).
"""

import numpy as np


def axes(size: int) -> tuple[np.ndarray, np.ndarray]:
    """Coordinates of the pixel centers.

    Args:
        size: Pixels along an edge.

    Returns:
        x of shape (1, 1, size) and y of shape (1, size, 1), float32.
    """
    centres = ((2 * np.arange(size) + 1) / size - 1).astype(np.float32)
    return centres[None, None, :], centres[None, :, None]


def per_picture(values: np.ndarray) -> np.ndarray:
    """Turn (n,) values into (n, 1, 1) float32, ready to broadcast over pictures."""
    return np.asarray(values, dtype=np.float32)[:, None, None]


def uniform(rng: np.random.Generator, n: int, low: float, high: float) -> np.ndarray:
    """A number for each picture, uniform between low and high: shape (n, 1, 1), float32."""
    return per_picture(rng.uniform(low, high, n))


def pick(rng: np.random.Generator, n: int, probability: float = 0.5) -> np.ndarray:
    """A boolean for each picture, true with the given probability: shape (n, 1, 1)."""
    return (rng.random(n) < probability)[:, None, None]


def edge(inside: np.ndarray, width: float | np.ndarray) -> np.ndarray:
    """Soft step: 0 where `inside` is below -width/2, 1 above width/2, linear between.

    Args:
        inside: Signed distance from the border, positive inside.
        width: Of the transition, in the same units.
    """
    return np.clip(inside / width + np.float32(0.5), 0, 1)


def bump(distance: np.ndarray, width: float | np.ndarray) -> np.ndarray:
    """Gaussian of a distance with standard deviation `width`; 1 at distance 0."""
    scaled = distance / width
    return np.exp(np.float32(-0.5) * scaled * scaled)


def smooth_noise(rng: np.random.Generator, n: int, size: int, cells: int) -> np.ndarray:
    """Random cubic B-spline surfaces of about zero mean and unit variance.

    Args:
        rng: Source of randomness.
        n: Number of surfaces.
        size: Pixels along an edge.
        cells: Number of bumps along an edge.

    Returns:
        float32 (n, size, size).
    """
    knots = cells + 3
    position = (np.arange(size) + 0.5) / size * cells + 1
    t = np.abs(position[:, None] - np.arange(knots)[None, :])
    basis = np.where(t < 1, 2 / 3 - t**2 + t**3 / 2, np.clip(2 - t, 0, None) ** 3 / 6)
    basis /= np.sqrt((basis**2).sum(axis=1, keepdims=True))
    basis = basis.astype(np.float32)
    return basis @ rng.standard_normal((n, knots, knots), dtype=np.float32) @ basis.T


def curve(*points: tuple[np.ndarray | float, np.ndarray | float], samples: int) -> np.ndarray:
    """Bezier curves by de Casteljau's algorithm.

    Args:
        *points: Control points (x, y), each coordinate a number or an array of shape (n,).
        samples: Points of a curve, at equal steps of its parameter.

    Returns:
        (n, samples, 2) as (x, y).
    """
    control = np.stack(np.broadcast_arrays(*(v for point in points for v in point)), axis=-1)
    control = control.reshape(len(control), len(points), 1, 2)
    t = np.linspace(0, 1, samples)[None, None, :, None]
    while control.shape[1] > 1:
        control = control[:, :-1] * (1 - t) + control[:, 1:] * t
    return control[:, 0]


def trace(points: np.ndarray, size: int, width: float) -> np.ndarray:
    """Draw sequences of points as soft lines.

    Args:
        points: (n, samples, 2) as (x, y); neighbors are at most about half a pixel apart.
        size: Pixels along an edge.
        width: Of a line, in picture units; drawn as a pixel at least.

    Returns:
        Coverage from 0 to 1, float32 (n, size, size).
    """
    n = len(points)
    thick = max(1, round(width * size / 2))
    offsets = np.arange(thick) - (thick - 1) / 2
    column = (points[..., 0] + 1) * size / 2 - 0.5
    row = (points[..., 1] + 1) * size / 2 - 0.5
    across, down = (grid.ravel() for grid in np.meshgrid(offsets, offsets))
    column, row = column[..., None] + across, row[..., None] + down
    left, top = np.floor(column).astype(int), np.floor(row).astype(int)
    picture = np.arange(n)[:, None, None]
    total = np.zeros(n * size * size, dtype=np.float32)
    for i in (top, top + 1):
        for j in (left, left + 1):
            weight = (1 - np.abs(row - i)) * (1 - np.abs(column - j))
            inside = (i >= 0) & (i < size) & (j >= 0) & (j < size)
            flat = (picture * size + i) * size + j
            np.maximum.at(total, flat[inside], weight[inside].astype(np.float32))
    return np.minimum(total * 1.4, 1).reshape(n, size, size)


def blur(pictures: np.ndarray) -> np.ndarray:
    """Binomial 3 x 3 blur; border pixels are repeated outwards.

    Args:
        pictures: (n, size, size).
    """
    padded = np.pad(pictures, ((0, 0), (1, 1), (0, 0)), mode="edge")
    pictures = (padded[:, :-2] + 2 * padded[:, 1:-1] + padded[:, 2:]) / 4
    padded = np.pad(pictures, ((0, 0), (0, 0), (1, 1)), mode="edge")
    return (padded[:, :, :-2] + 2 * padded[:, :, 1:-1] + padded[:, :, 2:]) / 4
