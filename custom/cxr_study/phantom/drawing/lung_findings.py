"""Painters of the findings of the lungs; each gives the density to add."""

import numpy as np

from cxr_study.phantom.drawing.canvas import (
    bump,
    curve,
    edge,
    per_picture,
    pick,
    smooth_noise,
    uniform,
)
from cxr_study.phantom.drawing.chest import (
    Chest,
    distance_from,
    draw_lines,
    lung_border,
    sides,
    spot,
)


def atelectasis(chest: Chest, rng: np.random.Generator) -> np.ndarray:
    """One or two dense plates near the base, on the side that lost volume."""
    n = len(chest)
    side = np.sign(per_picture(chest.anatomy.collapse))
    total = np.zeros_like(chest.density)
    for shown in (np.ones((n, 1, 1), bool), pick(rng, n, 0.4)):
        x, y = spot(chest, rng, 0.55, 0.85, side)
        slope = uniform(rng, n, -0.45, 0.45)
        across = chest.y - y - slope * (chest.x - x)
        along = np.abs(chest.x - x)
        plate = edge(uniform(rng, n, 0.013, 0.028) - np.abs(across), 0.03)
        plate *= edge(uniform(rng, n, 0.14, 0.26) - along, 0.08) * uniform(rng, n, 0.3, 0.7)
        total = np.maximum(total, plate * shown)
    return total * chest.thorax


def consolidation(chest: Chest, rng: np.random.Generator) -> np.ndarray:
    """A dense lobe with a sharp fissure on one side and dark air bronchograms."""
    n, anatomy = len(chest), chest.anatomy
    apex, base = per_picture(anatomy.apex), per_picture(anatomy.right_base)
    upper = np.where(pick(rng, n), 1, -1)
    fissure = apex + (base - apex) * uniform(rng, n, 0.45, 0.62)
    fissure = fissure + uniform(rng, n, -0.2, 0.2) * (chest.a - 0.4)
    depth = upper * (fissure - chest.y)
    lobe = edge(depth, 0.035) * edge(uniform(rng, n, 0.25, 0.6) - depth, 0.2)
    lobe *= sides(chest, rng) * edge(chest.a - uniform(rng, n, 0.0, 0.2), 0.12)
    texture = 1 + 0.12 * smooth_noise(rng, n, chest.size, 9)
    filled = lobe * (uniform(rng, n, 0.3, 0.8) * texture - 1.6 * chest.markings)
    return filled * chest.lung


def edema(chest: Chest, rng: np.random.Generator) -> np.ndarray:
    """Haze around both hila and short Kerley lines at the lateral bases."""
    n, anatomy = len(chest), chest.anatomy
    strength = uniform(rng, n, 0.25, 0.9)
    haze = bump(chest.a - 0.24, 0.19) * bump(chest.y - 0.02, 0.27)
    haze *= 0.5 * (1 + 0.25 * smooth_noise(rng, n, chest.size, 10))
    lines = []
    for side in (-1, 1):
        for step in range(5):
            y = anatomy.right_base - 0.02 - 0.055 * step + 0.015 * rng.standard_normal(n)
            outer = lung_border(anatomy, y) - 0.01
            inner = outer - rng.uniform(0.08, 0.14, n)
            ends = (side * inner, y), (side * outer, y)
            lines.append(curve(*ends, samples=chest.size // 4))
    kerley = draw_lines(chest, np.concatenate(lines, axis=1), 0.02)
    return strength * (haze * chest.lung + 0.3 * kerley * chest.thorax)


def emphysema(chest: Chest, rng: np.random.Generator) -> np.ndarray:
    """Thin-walled bullae in the upper zones (the large dark lungs are in `deform`)."""
    n = len(chest)
    total = np.zeros_like(chest.density)
    for shown in (pick(rng, n, 0.7), pick(rng, n, 0.4)):
        x, y = spot(chest, rng, 0.15, 0.5)
        radius = uniform(rng, n, 0.08, 0.15)
        distance = distance_from(chest, x, y)
        bulla = -0.12 * edge(radius - distance, 0.04) + 0.12 * bump(distance - radius, 0.014)
        total += bulla * shown
    return total * chest.lung


def fibrosis(chest: Chest, rng: np.random.Generator) -> np.ndarray:
    """A net of fine lines in the periphery and at the bases of both lungs."""
    n, anatomy = len(chest), chest.anatomy
    net = bump(smooth_noise(rng, n, chest.size, 11), 0.2)
    net = np.maximum(net, bump(smooth_noise(rng, n, chest.size, 14), 0.2))
    basal = edge(chest.y - per_picture(anatomy.right_base) + uniform(rng, n, 0.2, 0.5), 0.4)
    peripheral = 0.35 + 0.65 * edge(chest.a - 0.42, 0.25)
    return net * basal * peripheral * uniform(rng, n, 0.4, 0.75) * chest.lung


def infiltration(chest: Chest, rng: np.random.Generator) -> np.ndarray:
    """Faint fine mottling over a zone of one or both lungs."""
    n = len(chest)
    x, y = spot(chest, rng, 0.25, 0.8)
    mirrored = np.where(pick(rng, n, 0.5), np.abs(chest.x) - np.abs(x), chest.x - x)
    zone = bump(mirrored, 0.28) * bump(chest.y - y, 0.3)
    grains = np.clip(smooth_noise(rng, n, chest.size, 30) + 0.2, 0, 2)
    return zone * grains * uniform(rng, n, 0.2, 0.42) * chest.lung


def lung_lesion(chest: Chest, rng: np.random.Generator) -> np.ndarray:
    """A cavity: a thick ring around air, sometimes with fluid in it."""
    n = len(chest)
    x, y = spot(chest, rng, 0.15, 0.75)
    radius = uniform(rng, n, 0.085, 0.15)
    distance = distance_from(chest, x, y, uniform(rng, n, 0.85, 1.2))
    inside = edge(radius - distance, 0.03)
    ring = edge(uniform(rng, n, 0.018, 0.03) - np.abs(distance - radius), 0.03)
    fluid = pick(rng, n, 0.4) * edge(chest.y - y - 0.3 * radius, 0.03) * inside
    strength = uniform(rng, n, 0.35, 0.75)
    cavity = strength * np.maximum(ring, 0.8 * fluid) - 0.12 * inside * (1 - ring)
    return cavity * (0.3 * chest.thorax + 0.7 * chest.lung)


def lung_opacity(chest: Chest, rng: np.random.Generator) -> np.ndarray:
    """A broad even veil over much of one lung, sometimes of both."""
    n = len(chest)
    x, y = spot(chest, rng, 0.2, 0.8)
    mirrored = np.where(pick(rng, n, 0.25), np.abs(chest.x) - np.abs(x), chest.x - x)
    veil = np.square(mirrored / 0.38) + np.square((chest.y - y) / uniform(rng, n, 0.3, 0.5))
    veil = edge(1 - np.sqrt(veil), 0.9) * edge(mirrored * np.sign(x) + 0.5, 0.3)
    return veil * (uniform(rng, n, 0.18, 0.5) - 0.4 * chest.markings) * chest.lung


def mass(chest: Chest, rng: np.random.Generator) -> np.ndarray:
    """One large dense lobulated shadow."""
    n = len(chest)
    x, y = spot(chest, rng, 0.15, 0.8)
    radius = uniform(rng, n, 0.11, 0.19)
    distance = distance_from(chest, x, y)
    angle = np.arctan2(chest.y - y, chest.x - x)
    lobes = 1 + 0.1 * np.cos(3 * angle + uniform(rng, n, 0, 6)) + 0.05 * np.cos(7 * angle)
    ball = np.sqrt(np.clip(1 - np.square(distance / (radius * lobes)), 0, 1))
    return ball * uniform(rng, n, 0.45, 0.95) * (0.25 * chest.thorax + 0.75 * chest.lung)


def nodule(chest: Chest, rng: np.random.Generator) -> np.ndarray:
    """One to three small round dense spots."""
    n = len(chest)
    total = np.zeros_like(chest.density)
    for shown in (np.ones((n, 1, 1), bool), pick(rng, n, 0.5), pick(rng, n, 0.3)):
        x, y = spot(chest, rng, 0.12, 0.85)
        disc = edge(uniform(rng, n, 0.04, 0.065) - distance_from(chest, x, y), 0.035)
        total = np.maximum(total, disc * uniform(rng, n, 0.35, 0.7) * shown)
    return total * chest.lung


def pneumonia(chest: Chest, rng: np.random.Generator) -> np.ndarray:
    """A cluster of ill-defined fluffy patches."""
    n = len(chest)
    x, y = spot(chest, rng, 0.35, 0.85)
    fluff = np.zeros_like(chest.density)
    for spread in (0.0, 0.12, 0.16):
        dx, dy = spread * uniform(rng, n, -1, 1), spread * uniform(rng, n, -1, 1)
        patch = bump(distance_from(chest, x + dx, y + dy), uniform(rng, n, 0.06, 0.11))
        fluff = np.maximum(fluff, patch)
    fluff = np.clip(fluff * (1 + 0.4 * smooth_noise(rng, n, chest.size, 14)), 0, 1.3)
    return fluff * uniform(rng, n, 0.3, 0.65) * chest.lung
