"""The chest from the side: one lung field, the heart in front, the spine behind.

The patient looks to the left of the picture. Findings that have a shape in this projection are
drawn as simple blots; the others do not show.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from cxr_phantom.drawing.anatomy import Anatomy, Shown
from cxr_phantom.drawing.canvas import axes, bump, edge, per_picture, smooth_noise, uniform
from cxr_phantom.drawing.chest import ABDOMEN_DENSITY, HEART_DENSITY, LUNG_DENSITY

# Opaque findings: smallest and largest radius in picture units, and density.
_BLOTS = {
    "Consolidation": (0.16, 0.26, 0.55),
    "Edema": (0.35, 0.45, 0.3),
    "Infiltration": (0.15, 0.25, 0.25),
    "Lung Lesion": (0.07, 0.12, 0.4),
    "Lung Opacity": (0.2, 0.35, 0.35),
    "Mass": (0.1, 0.17, 0.6),
    "Nodule": (0.04, 0.06, 0.5),
    "Pneumonia": (0.1, 0.2, 0.4),
}


@dataclass(frozen=True)
class LateralChest:
    """Drawn chests; arrays of shape (n, size, size) but for y, (n, size, 1).

    Attributes:
        x: Distance backwards from the middle of the chest.
        y: Distance downwards.
        density: X-ray density, as in `chest.Chest`.
        lung: 1 inside the lungs.
        diaphragm: Height y of the diaphragm under each pixel.
    """

    x: np.ndarray
    y: np.ndarray
    density: np.ndarray
    lung: np.ndarray
    diaphragm: np.ndarray


def draw_lateral(anatomy: Anatomy, size: int, rng: np.random.Generator) -> LateralChest:
    """Draw deformed chests from the side, `size` pixels along an edge; `rng` gives texture."""
    n, pixel = len(anatomy), 2 / size
    column, row = axes(size)
    p = anatomy.per_picture()
    apex, base, dome, wall = p["apex"], p["right_base"], p["dome"], p["wall"]
    aeration = p["aeration"]
    y = row / p["magnification"] + np.float32(0.02)
    x = (column - p["centre"]) / p["magnification"] - p["tilt"] * y

    # Lungs between sternum and back; the diaphragm falls off to a deep angle behind.
    t = np.clip((y - apex) / (base - apex), 0, 1.5)
    rise = np.sqrt(1 - np.square(1 - np.minimum(t / 0.5, 1)))
    front, back = 0.1 - (0.5 + 0.1 * t) * rise, 0.1 + (0.45 + 0.05 * t) * rise
    diaphragm = base - 0.1 + 0.35 * dome * np.square(x + 0.15) + 0.4 * np.clip(x, 0, None)
    above = edge(diaphragm - y, 1.5 * pixel)
    inside = np.minimum(x - front, back - x)
    lung = edge(inside, 1.5 * pixel) * above * (y > apex)

    # Body, thin towards its outline; shoulders above, breasts in front.
    outline = np.minimum(x - front + 0.6 * wall + 0.1, back + wall + 0.1 - x)
    shoulders = edge(-0.45 - y, 0.3)
    depth = np.maximum(np.clip(outline / 0.2, 0, 1), shoulders * edge(0.75 - np.abs(x), 0.3))
    tissue = 1.15 + 1.6 * wall + 0.5 * shoulders
    density = depth * (tissue - (tissue - LUNG_DENSITY) * aeration * lung * (1 - 0.6 * shoulders))
    density += (ABDOMEN_DENSITY - tissue) * depth * (1 - above) * edge(y - 0.1, 0.2)
    breast = bump(x - front, 0.14) * bump(y - 0.35, 0.16)
    density += 0.4 * breast * p["female"]
    density += 0.05 * smooth_noise(rng, n, size, 5) * depth

    ribs = edge(np.cos(2 * np.pi * (y - 0.45 * x) / p["rib_spacing"]) - 0.45, 0.7)
    density += 0.6 * p["rib_contrast"] * ribs * lung
    density += 0.3 * bump(x - 0.02, 0.09) * bump(y + 0.03, 0.12) * lung  # hila

    heart = np.square((x + 0.2 - 0.3 * (y - 0.15)) / (0.8 * p["heart_width"]))
    heart = edge(1 - np.sqrt(heart + np.square((y - 0.2) / p["heart_height"])), 0.2)
    arch = bump(np.hypot(x - 0.06, y + 0.28) - 0.13, 0.05) * edge(-0.2 - y, 0.1)
    density += np.maximum(HEART_DENSITY - density, 0) * np.maximum(heart, 0.5 * arch)

    # Vertebrae, less dense further down, where the lungs are wider; the windpipe.
    spine = edge(0.1 - np.abs(x - 0.42 + 0.12 * np.square(y)), 0.05)
    vertebrae = 0.7 + 0.3 * edge(np.cos(2 * np.pi * y / 0.16), 0.5)
    density += (0.55 - 0.2 * t) * spine * vertebrae * depth
    trachea = edge(0.05 - np.abs(x - 0.02 - 0.12 * (y + 0.9)), 0.03) * edge(-0.25 - y, 0.06)
    density -= 0.4 * trachea * (1 - 0.7 * lung)
    return LateralChest(
        x=x,
        y=y,
        density=density.astype(np.float32),
        lung=(lung * (1 - heart)).astype(np.float32),
        diaphragm=diaphragm,
    )


def paint_lateral(chest: LateralChest, shown: Mapping[str, Shown]) -> None:
    """Add the findings that show from the side to `chest.density`, in place."""
    for name, (smallest, largest, density) in _BLOTS.items():
        rows, rng = shown[name].rows, shown[name].rng
        n = len(rows)
        x, y = uniform(rng, n, -0.35, 0.4), uniform(rng, n, -0.35, 0.3)
        distance = np.hypot(chest.x[rows] - x, chest.y[rows] - y)
        blot = edge(1 - distance / uniform(rng, n, smallest, largest), 0.6) * chest.lung[rows]
        chest.density[rows] += density * (0.6 + 0.6 * per_picture(shown[name].visibility)) * blot
    rows = shown["Pleural Effusion"].rows
    depth = 0.05 + 0.35 * per_picture(shown["Pleural Effusion"].visibility)
    surface = chest.diaphragm[rows].max(axis=(1, 2), keepdims=True) - 0.25 - depth
    fluid = edge(chest.y[rows] - surface - 0.3 * (0.3 - chest.x[rows]), 0.06) * chest.lung[rows]
    chest.density[rows] += fluid * np.maximum(ABDOMEN_DENSITY - chest.density[rows], 0)
    rows, rng = shown["Support Devices"].rows, shown["Support Devices"].rng
    n = len(rows)
    line = bump(chest.x[rows] - uniform(rng, n, -0.1, 0.1) + 0.3 * chest.y[rows], 0.02)
    chest.density[rows] += 0.9 * line * edge(uniform(rng, n, -0.1, 0.4) - chest.y[rows], 0.05)
