"""The chest from the side: a silhouette, with the heart in front and the spine behind."""

import numpy as np

from cxr_phantom.drawing.anatomy import Anatomy
from cxr_phantom.drawing.canvas import axes, edge, smooth_noise
from cxr_phantom.drawing.chest import ABDOMEN_DENSITY, HEART_DENSITY, LUNG_DENSITY


def draw_lateral(anatomy: Anatomy, size: int, rng: np.random.Generator) -> np.ndarray:
    """Density of chests that look to the left, float32 (n, size, size); no finding shows.

    Args:
        anatomy: The n chests.
        size: Pixels along an edge.
        rng: Gives texture.
    """
    column, row = axes(size)
    p = anatomy.per_picture()
    x, y = (column - p["centre"]) / p["magnification"], row / p["magnification"]
    body = edge(0.85 - np.abs(x), 0.3)
    lung = edge(1 - np.hypot((x - 0.1) / 0.5, (y + 0.1) / 0.7), 0.1)
    heart = edge(1 - np.hypot((x + 0.2) / (0.8 * p["heart_width"]), (y - 0.2) / 0.3), 0.2)
    spine = edge(0.1 - np.abs(x - 0.42), 0.05)
    density = body * (ABDOMEN_DENSITY - (ABDOMEN_DENSITY - LUNG_DENSITY) * lung)
    density += np.maximum(HEART_DENSITY - density, 0) * heart
    density += body * (0.4 * spine + 0.05 * smooth_noise(rng, len(anatomy), size, 5))
    return density.astype(np.float32)
