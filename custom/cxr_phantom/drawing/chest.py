"""Drawn chests as X-ray density: from the front, with geometry for findings, and from the side."""

from dataclasses import dataclass, fields

import numpy as np

from cxr_phantom.drawing.anatomy import Anatomy, fields_per_picture
from cxr_phantom.drawing.canvas import (
    axes,
    bump,
    edge,
    per_picture,
    pick,
    smooth_noise,
    trace,
    uniform,
)

LUNG_DENSITY, HEART_DENSITY, ABDOMEN_DENSITY = 0.42, 1.5, 1.75  # of air: 0
INNER = 0.1  # distance of the medial lung border from the midline


@dataclass(frozen=True)
class Chest:
    """Drawn chests: the density of each pixel and the geometry by which findings are placed.

    Attributes:
        anatomy: What was drawn.
        rng: Source of randomness for what is painted on them.
        x: Distance from the midline, positive towards the patient's left; (n, size, size).
        y: Distance downwards; (n, size, 1).
        a: Absolute value of x.
        left: Whether a pixel is on the patient's left.
        density: X-ray density, 0 for air, about 0.4 for lung, 1.5 for the heart.
        thorax: 1 inside the lungs as bounded by ribs and diaphragm, heart not subtracted.
        lung: 1 in the part of the lungs that neither heart nor mediastinum covers.
        markings: Density of the vessels.
        diaphragm: Height y of the diaphragm under each pixel.
    """

    anatomy: Anatomy
    rng: np.random.Generator
    x: np.ndarray
    y: np.ndarray
    a: np.ndarray
    left: np.ndarray
    density: np.ndarray
    thorax: np.ndarray
    lung: np.ndarray
    markings: np.ndarray
    diaphragm: np.ndarray

    def __len__(self) -> int:
        return len(self.anatomy)

    @property
    def size(self) -> int:
        """Pixels along an edge."""
        return int(self.density.shape[-1])

    def select(self, rows: np.ndarray, rng: np.random.Generator) -> "Chest":
        """Copies of some chests.

        Args:
            rows: Indices of the chests.
            rng: Source of randomness of the copies.
        """
        arrays = {f.name: getattr(self, f.name)[rows] for f in fields(self) if f.name != "rng"}
        return Chest(rng=rng, **arrays)

    def uniform(self, low: float, high: float) -> np.ndarray:
        """A number for each chest, uniform between low and high: shape (n, 1, 1)."""
        return uniform(self.rng, len(self), low, high)

    def pick(self, probability: float = 0.5) -> np.ndarray:
        """A boolean for each chest, true with the given probability: shape (n, 1, 1)."""
        return pick(self.rng, len(self), probability)

    def noise(self, cells: int) -> np.ndarray:
        """Smooth noise over each chest; see `canvas.smooth_noise`."""
        return smooth_noise(self.rng, len(self), self.size, cells)

    def sides(self, both: float = 0.0) -> np.ndarray:
        """Mask of a random side of each chest.

        Args:
            both: Probability of both sides.

        Returns:
            1 on the chosen side, else 0; float32 (n, size, size).
        """
        return ((self.left == self.pick()) | self.pick(both)).astype(np.float32)

    def spot(
        self, top: float, bottom: float, side: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """A random place in the open lung.

        Args:
            top: Smallest distance from the apex, as a fraction of the lung's height.
            bottom: Largest distance, likewise.
            side: 1 for the patient's left, -1 for the right, (n, 1, 1). None: at random.

        Returns:
            x and y in chest coordinates, each float32 (n, 1, 1).
        """
        if side is None:
            side = np.where(self.pick(), 1, -1)
        apex, base = per_picture(self.anatomy.apex), per_picture(self.anatomy.right_base)
        height = self.uniform(top, bottom)
        y = apex + height * (base - apex)
        medial = 0.22 + 0.16 * ((side > 0) & (height > 0.45))
        x = medial + (0.9 * lung_border(self.anatomy, y) - medial) * self.uniform(0.1, 0.95)
        return (side * x).astype(np.float32), y.astype(np.float32)

    def distance_from(
        self, x: np.ndarray, y: np.ndarray, aspect: float | np.ndarray = 1.0
    ) -> np.ndarray:
        """Distance of each pixel from (x, y).

        Args:
            x: (n, 1, 1).
            y: (n, 1, 1).
            aspect: Width by height of the ellipses of equal distance.
        """
        return np.sqrt(np.square((self.x - x) / aspect) + np.square(self.y - y))

    def draw_lines(self, points: np.ndarray, width: float) -> np.ndarray:
        """Draw sequences of points on the picture.

        Args:
            points: (n, samples, 2) as (x, y) in chest coordinates.
            width: Of the lines, in picture units.

        Returns:
            Coverage, see `canvas.trace`.
        """
        x, y, scale = points[..., 0], points[..., 1], self.anatomy.magnification[:, None]
        across = (x + self.anatomy.tilt[:, None] * y) * scale + self.anatomy.centre[:, None]
        return trace(np.stack([across, (y - 0.02) * scale], axis=-1), self.size, width)

    def shrunken_lung(self, drop: np.ndarray, gap: np.ndarray) -> np.ndarray:
        """Lateral border of a lung whose apex is `drop` lower and whose side is `gap` inward."""
        smaller = self.anatomy.copy()
        smaller.apex += drop[:, 0, 0]
        smaller.lung_width -= gap[:, 0, 0]
        return lung_border(smaller, self.y)


def lung_border(anatomy: Anatomy, y: np.ndarray) -> np.ndarray:
    """Distance of the lateral lung border from the midline; 0 above the apex.

    Args:
        anatomy: n chests.
        y: Heights, shape (n, ...).
    """
    apex, base, width = (
        np.reshape(value, (-1,) + (1,) * (y.ndim - 1)).astype(np.float32)
        for value in (anatomy.apex, anatomy.right_base, anatomy.lung_width)
    )
    t = np.clip((y - apex) / (base - apex), 0, 1.4)
    rise = np.sqrt(1 - np.square(1 - np.minimum(t / 0.8, 1)))
    return np.where(y > apex, INNER + (width - INNER) * rise * (0.92 + 0.08 * t), 0)


def posterior_ribs(anatomy: Anatomy, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Posterior ribs, broken where the anatomy has a fracture.

    Args:
        anatomy: n chests.
        x: Chest coordinates, (n, size, size).
        y: Chest coordinates, (n, size, 1).

    Returns:
        1 on a rib, 0 between ribs, shape (n, size, size).
    """
    p = fields_per_picture(anatomy)
    phase = (y - p["rib_slope"] * np.square(np.abs(x) - np.float32(0.1))) / p["rib_spacing"]
    phase += p["rib_start"]
    rows = np.flatnonzero(anatomy.break_step)
    at = p["break_at"][rows]
    beyond = edge((x[rows] - at) * np.sign(at), 0.02)
    phase[rows] += p["break_step"][rows] * beyond * bump(y[rows] - p["break_height"][rows], 0.16)
    return edge(np.cos(np.float32(2 * np.pi) * phase) - np.float32(0.45), 0.7)


def draw_chest(anatomy: Anatomy, size: int, rng: np.random.Generator) -> Chest:
    """Draw chests from the front, without findings other than those of their shape.

    Args:
        anatomy: n chests in their view; see `rendering.project`.
        size: Pixels along an edge.
        rng: Gives the texture.
    """
    n, pixel = len(anatomy), 2 / size
    p = fields_per_picture(anatomy)
    column, row = axes(size)
    y = row / p["magnification"] + np.float32(0.02)
    x = (column - p["centre"]) / p["magnification"] - p["tilt"] * y
    x = x + p["rotation"] * np.abs(x)
    a = np.abs(x)
    left = x > 0

    # Lungs: lateral border, medial border, and a dome-shaped diaphragm that falls off to the sides.
    right_base = p["right_base"] - np.maximum(-p["collapse"], 0)
    left_base = p["left_base"] - np.maximum(p["collapse"], 0)
    diaphragm = np.where(left, left_base, right_base) + p["dome"] * np.square(a - 0.28)
    border = lung_border(anatomy, y)
    above = edge(diaphragm - y, 1.5 * pixel)
    thorax = edge(border - a, 1.5 * pixel) * above

    # Body: neck, shoulders, axillae and chest wall, thinner towards its outline.
    torso = p["lung_width"] + p["wall"] + 0.04
    neck = 0.26 + 1.4 * np.square(edge(y + 0.7, 0.6))
    side = torso + (1.3 - torso) * np.square(edge(-0.05 - y, 0.6))
    outline = np.minimum(neck, side)
    depth = np.clip((outline - a) / 0.3, 0, 1)
    depth *= 2 - depth
    wall = 1.0 + 1.6 * p["wall"]
    breast = bump(a - 0.42, 0.2) * bump(y - 0.42, 0.16) * 0.3 * p["female"]
    density = depth * (wall - (wall - LUNG_DENSITY) * p["aeration"] * thorax + breast)
    density += (ABDOMEN_DENSITY - wall) * depth * (1 - above) * edge(y - 0.1, 0.2)
    density += 0.05 * smooth_noise(rng, n, size, 5) * depth

    # Gas in the stomach, under the left dome.
    bubble = np.square((x - 0.33) / 0.15) + np.square((y - left_base - 0.17) / 0.09)
    density -= 0.8 * p["gas"] * edge(1 - bubble, 0.6) * (1 - above)

    # Vessels fan out of the hila and fade towards the periphery.
    across, down = a - np.float32(0.16), y + np.float32(0.02)
    radius = np.sqrt(np.square(across) + np.square(down))
    angle = np.arctan2(down, across) + 0.35 * np.sin(5 * radius + p["vessel_phase"] * (1 + left))
    fan = np.cos(9 * angle + 3 * p["vessel_phase"]) + 0.7 * np.cos(16 * angle - p["vessel_phase"])
    hilum = bump(a - 0.17, 0.075) * bump(down, 0.13)
    markings = np.clip(fan, 0, 1.2) * np.exp(-radius / 0.28) + 1.6 * hilum
    markings *= p["vessels"] * thorax
    density += markings

    # Ribs: posterior ones fall to the side, fainter anterior ones fall to the middle.
    anterior = (y + 0.7 * a) / (1.25 * p["rib_spacing"]) + 1.7 * p["rib_start"]
    bars = posterior_ribs(anatomy, x, y) + 0.45 * edge(
        np.cos(2 * np.pi * anterior) - 0.35, 0.8
    ) * edge(a - 0.3, 0.3)
    caged = edge(border + 0.04 - a, 0.05) * edge(y - p["apex"] + 0.03, 0.05)
    density += p["rib_contrast"] * bars * caged * (0.35 + 0.65 * above) * edge(a - 0.08, 0.05)

    clavicle = y + 0.6 + 0.3 * a - 0.35 * np.square(a)
    density += 0.3 * bump(clavicle, 0.024) * edge(a - 0.08, 0.05) * edge(0.85 - a, 0.1)

    # Heart, great vessels, aortic knob.
    x_shifted = x - p["shift"] - 0.3 * p["collapse"]
    widening = 1 + 0.25 * edge(y - 0.1, 0.4)
    pedicle = edge(p["mediastinum_width"] * widening - np.abs(x_shifted), 0.05)
    knob = np.square(x_shifted - p["mediastinum_width"] - 0.01) + np.square(y + 0.3)
    knob = edge(p["knob"] - np.sqrt(knob), 0.04)
    tilted = y - 0.23 - 0.4 * (x_shifted - 0.08)
    beyond = (x_shifted - 0.45 * p["heart_width"] + 0.03) / p["heart_width"]
    heart = np.square(beyond) + np.square(tilted / p["heart_height"])
    heart = edge(1 - np.sqrt(heart), 0.2)
    centre = np.maximum(np.maximum(pedicle * depth, heart), 0.85 * knob)
    centre *= 0.55 + 0.45 * edge(y + 0.6, 0.4)
    density += np.maximum(HEART_DENSITY - density, 0) * centre * (0.85 + 0.15 * above)

    spine = edge(0.085 - np.abs(x), 0.04)
    density += spine * depth * (0.12 + 0.05 * np.cos(2 * np.pi * y / 0.14 + p["vessel_phase"]))
    trachea = edge(0.05 - np.abs(x_shifted), 0.03) * edge(-0.2 - y, 0.06)
    density -= 0.4 * trachea * depth

    lung = thorax * (1 - centre)
    return Chest(
        anatomy=anatomy,
        rng=rng,
        x=x,
        y=y,
        a=a,
        left=left,
        density=density.astype(np.float32),
        thorax=thorax.astype(np.float32),
        lung=lung.astype(np.float32),
        markings=(markings * (1 - centre)).astype(np.float32),
        diaphragm=diaphragm.astype(np.float32),
    )


def draw_lateral(anatomy: Anatomy, size: int, rng: np.random.Generator) -> np.ndarray:
    """Draw chests that face left in the picture; no finding shows.

    Args:
        anatomy: The n chests.
        size: Pixels along an edge.
        rng: Gives texture.

    Returns:
        X-ray density, float32 (n, size, size).
    """
    column, row = axes(size)
    p = fields_per_picture(anatomy)
    x, y = (column - p["centre"]) / p["magnification"], row / p["magnification"]
    body = edge(0.85 - np.abs(x), 0.3)
    lung = edge(1 - np.hypot((x - 0.1) / 0.5, (y + 0.1) / 0.7), 0.1)
    heart = edge(1 - np.hypot((x + 0.2) / (0.8 * p["heart_width"]), (y - 0.2) / 0.3), 0.2)
    spine = edge(0.1 - np.abs(x - 0.42), 0.05)
    density = body * (ABDOMEN_DENSITY - (ABDOMEN_DENSITY - LUNG_DENSITY) * lung)
    density += np.maximum(HEART_DENSITY - density, 0) * heart
    density += body * (0.4 * spine + 0.05 * smooth_noise(rng, len(anatomy), size, 5))
    return density.astype(np.float32)
