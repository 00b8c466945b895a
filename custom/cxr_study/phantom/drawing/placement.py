"""Where findings lie on a chest: sides, places, distances, lines."""

import numpy as np

from cxr_study.phantom.drawing.canvas import (
    per_picture,
    pick,
    trace,
    uniform,
)
from cxr_study.phantom.drawing.chest import (
    Chest,
    lung_border,
)


def sides(chest: Chest, rng: np.random.Generator, both: float = 0.0) -> np.ndarray:
    """1 on a random side of each chest, with probability `both` on both sides; (n, size, size)."""
    n = len(chest)
    return ((chest.left == pick(rng, n)) | pick(rng, n, both)).astype(np.float32)


def spot(
    chest: Chest,
    rng: np.random.Generator,
    top: float,
    bottom: float,
    side: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """A random place in the open part of a lung, between two fractions of the lung's height.

    Returns:
        x and y in chest coordinates, each of shape (n, 1, 1).
    """
    n, anatomy = len(chest), chest.anatomy
    if side is None:
        side = np.where(pick(rng, n), 1, -1)
    apex, base = per_picture(anatomy.apex), per_picture(anatomy.right_base)
    height = uniform(rng, n, top, bottom)
    y = apex + height * (base - apex)
    medial = 0.22 + 0.16 * ((side > 0) & (height > 0.45))
    x = medial + (0.9 * lung_border(anatomy, y) - medial) * uniform(rng, n, 0.1, 0.95)
    return (side * x).astype(np.float32), y.astype(np.float32)


def distance_from(
    chest: Chest, x: np.ndarray, y: np.ndarray, aspect: float | np.ndarray = 1.0
) -> np.ndarray:
    """Distance of each pixel from (x, y), with x stretched by `aspect`."""
    return np.sqrt(np.square((chest.x - x) / aspect) + np.square(chest.y - y))


def draw_lines(chest: Chest, points: np.ndarray, width: float) -> np.ndarray:
    """Trace point sequences (n, samples, 2) given in chest coordinates."""
    anatomy = chest.anatomy
    x, y = points[..., 0], points[..., 1]
    centre, tilt, scale = (
        value[:, None] for value in (anatomy.centre, anatomy.tilt, anatomy.magnification)
    )
    on_picture = np.stack([(x + tilt * y) * scale + centre, (y - 0.02) * scale], axis=-1)
    return trace(on_picture, chest.size, width)


def shrunken_lung(chest: Chest, drop: np.ndarray, gap: np.ndarray) -> np.ndarray:
    """Lateral border of a lung whose apex is `drop` lower and whose side is `gap` further in."""
    everyone = np.arange(len(chest))
    smaller = chest.anatomy.change(
        everyone,
        apex=chest.anatomy.apex + drop[:, 0, 0],
        lung_width=chest.anatomy.lung_width - gap[:, 0, 0],
    )
    return lung_border(smaller, chest.y)
