"""Painters of the findings in the lungs; `findings.py` defines what a painter is."""

import numpy as np

from cxr_phantom.drawing.canvas import bump, curve, edge, per_picture
from cxr_phantom.drawing.chest import Chest, lung_border


def atelectasis(chest: Chest) -> np.ndarray:
    """One or two dense plates near the base, on the side that lost volume."""
    side = np.sign(per_picture(chest.anatomy.collapse))
    total = np.zeros_like(chest.density)
    for shown in (True, chest.pick(0.4)):
        x, y = chest.spot(0.55, 0.85, side)
        slope = chest.uniform(-0.45, 0.45)
        across = chest.y - y - slope * (chest.x - x)
        along = np.abs(chest.x - x)
        plate = edge(chest.uniform(0.013, 0.028) - np.abs(across), 0.03)
        plate *= edge(chest.uniform(0.14, 0.26) - along, 0.08) * chest.uniform(0.3, 0.7)
        total = np.maximum(total, plate * shown)
    return total * chest.thorax


def consolidation(chest: Chest) -> np.ndarray:
    """A dense lobe with a sharp fissure on one side and dark air bronchograms."""
    anatomy = chest.anatomy
    apex, base = per_picture(anatomy.apex), per_picture(anatomy.right_base)
    upper = np.where(chest.pick(), 1, -1)
    fissure = apex + (base - apex) * chest.uniform(0.45, 0.62)
    fissure = fissure + chest.uniform(-0.2, 0.2) * (chest.a - 0.4)
    depth = upper * (fissure - chest.y)
    lobe = edge(depth, 0.035) * edge(chest.uniform(0.25, 0.6) - depth, 0.2)
    lobe *= chest.sides() * edge(chest.a - chest.uniform(0.0, 0.2), 0.12)
    texture = 1 + 0.12 * chest.noise(9)
    filled = lobe * (chest.uniform(0.3, 0.8) * texture - 1.6 * chest.markings)
    return filled * chest.lung


def edema(chest: Chest) -> np.ndarray:
    """Haze around both hila and short Kerley lines at the lateral bases."""
    n, anatomy = len(chest), chest.anatomy
    strength = chest.uniform(0.25, 0.9)
    haze = bump(chest.a - 0.24, 0.19) * bump(chest.y - 0.02, 0.27)
    haze *= 0.5 * (1 + 0.25 * chest.noise(10))
    lines = []
    for side in (-1, 1):
        for step in range(5):
            y = anatomy.right_base - 0.02 - 0.055 * step + 0.015 * chest.rng.standard_normal(n)
            outer = lung_border(anatomy, y) - 0.01
            inner = outer - chest.rng.uniform(0.08, 0.14, n)
            ends = (side * inner, y), (side * outer, y)
            lines.append(curve(*ends, samples=chest.size // 4))
    kerley = chest.draw_lines(np.concatenate(lines, axis=1), 0.02)
    return strength * (haze * chest.lung + 0.3 * kerley * chest.thorax)


def emphysema(chest: Chest) -> np.ndarray:
    """Thin-walled bullae in the upper zones (the large dark lungs are in `deform`)."""
    total = np.zeros_like(chest.density)
    for shown in (chest.pick(0.7), chest.pick(0.4)):
        x, y = chest.spot(0.15, 0.5)
        radius = chest.uniform(0.08, 0.15)
        distance = chest.distance_from(x, y)
        bulla = -0.12 * edge(radius - distance, 0.04) + 0.12 * bump(distance - radius, 0.014)
        total += bulla * shown
    return total * chest.lung


def fibrosis(chest: Chest) -> np.ndarray:
    """A net of fine lines in the periphery and at the bases of both lungs."""
    anatomy = chest.anatomy
    net = bump(chest.noise(11), 0.2)
    net = np.maximum(net, bump(chest.noise(14), 0.2))
    basal = edge(chest.y - per_picture(anatomy.right_base) + chest.uniform(0.2, 0.5), 0.4)
    peripheral = 0.35 + 0.65 * edge(chest.a - 0.42, 0.25)
    return net * basal * peripheral * chest.uniform(0.4, 0.75) * chest.lung


def infiltration(chest: Chest) -> np.ndarray:
    """Faint fine mottling over a zone of one or both lungs."""
    x, y = chest.spot(0.25, 0.8)
    mirrored = np.where(chest.pick(0.5), np.abs(chest.x) - np.abs(x), chest.x - x)
    zone = bump(mirrored, 0.28) * bump(chest.y - y, 0.3)
    grains = np.clip(chest.noise(30) + 0.2, 0, 2)
    return zone * grains * chest.uniform(0.2, 0.42) * chest.lung


def lung_lesion(chest: Chest) -> np.ndarray:
    """A cavity: a thick ring around air, sometimes with fluid in it."""
    x, y = chest.spot(0.15, 0.75)
    radius = chest.uniform(0.085, 0.15)
    distance = chest.distance_from(x, y, chest.uniform(0.85, 1.2))
    inside = edge(radius - distance, 0.03)
    ring = edge(chest.uniform(0.018, 0.03) - np.abs(distance - radius), 0.03)
    fluid = chest.pick(0.4) * edge(chest.y - y - 0.3 * radius, 0.03) * inside
    strength = chest.uniform(0.35, 0.75)
    cavity = strength * np.maximum(ring, 0.8 * fluid) - 0.12 * inside * (1 - ring)
    return cavity * (0.3 * chest.thorax + 0.7 * chest.lung)


def lung_opacity(chest: Chest) -> np.ndarray:
    """A broad even veil over much of one lung, sometimes of both."""
    x, y = chest.spot(0.2, 0.8)
    mirrored = np.where(chest.pick(0.25), np.abs(chest.x) - np.abs(x), chest.x - x)
    veil = np.square(mirrored / 0.38) + np.square((chest.y - y) / chest.uniform(0.3, 0.5))
    veil = edge(1 - np.sqrt(veil), 0.9) * edge(mirrored * np.sign(x) + 0.5, 0.3)
    return veil * (chest.uniform(0.18, 0.5) - 0.4 * chest.markings) * chest.lung


def mass(chest: Chest) -> np.ndarray:
    """One large dense lobulated shadow."""
    x, y = chest.spot(0.15, 0.8)
    radius = chest.uniform(0.11, 0.19)
    distance = chest.distance_from(x, y)
    angle = np.arctan2(chest.y - y, chest.x - x)
    lobes = 1 + 0.1 * np.cos(3 * angle + chest.uniform(0, 6)) + 0.05 * np.cos(7 * angle)
    ball = np.sqrt(np.clip(1 - np.square(distance / (radius * lobes)), 0, 1))
    return ball * chest.uniform(0.45, 0.95) * (0.25 * chest.thorax + 0.75 * chest.lung)


def nodule(chest: Chest) -> np.ndarray:
    """One to three small round dense spots."""
    total = np.zeros_like(chest.density)
    for shown in (True, chest.pick(0.5), chest.pick(0.3)):
        x, y = chest.spot(0.12, 0.85)
        disc = edge(chest.uniform(0.04, 0.065) - chest.distance_from(x, y), 0.035)
        total = np.maximum(total, disc * chest.uniform(0.35, 0.7) * shown)
    return total * chest.lung


def pneumonia(chest: Chest) -> np.ndarray:
    """A cluster of ill-defined fluffy patches."""
    x, y = chest.spot(0.35, 0.85)
    fluff = np.zeros_like(chest.density)
    for spread in (0.0, 0.12, 0.16):
        dx, dy = spread * chest.uniform(-1, 1), spread * chest.uniform(-1, 1)
        patch = bump(chest.distance_from(x + dx, y + dy), chest.uniform(0.06, 0.11))
        fluff = np.maximum(fluff, patch)
    fluff = np.clip(fluff * (1 + 0.4 * chest.noise(14)), 0, 1.3)
    return fluff * chest.uniform(0.3, 0.65) * chest.lung
