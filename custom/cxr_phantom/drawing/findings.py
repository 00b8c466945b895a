"""Effects of findings on a chest: some change its shape, most are painted on it, each by a painter.

Side, place and size are random; faint examples are hard to see, as in the clinic. A painter takes
n chests that have the finding, and returns the density to add, (n, size, size). Here are those of
the pleura, the bones, the hernia and the devices; those of the lungs are in `lung_findings.py`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from cxr_phantom.drawing import lung_findings
from cxr_phantom.drawing.anatomy import Anatomy
from cxr_phantom.drawing.canvas import bump, curve, edge, per_picture
from cxr_phantom.drawing.chest import (
    ABDOMEN_DENSITY,
    HEART_DENSITY,
    Chest,
    lung_border,
    posterior_ribs,
)

_FAINTEST, _PLAINEST = 0.7, 1.4  # density of a finding, as a multiple of what its painter gives
_REPLACING = ("Hernia", "Pleural Effusion")  # hide what lies beneath, which they can do only once


@dataclass(frozen=True)
class Shown:
    """A finding in some of n chests.

    Attributes:
        rows: Indices of the chests that have it, (k,).
        visibility: How clearly it shows in each of them, from 0 to 1, (k,).
        rng: Source of randomness of this finding alone.
    """

    rows: np.ndarray
    visibility: np.ndarray
    rng: np.random.Generator

    def between(self, low: float, high: float) -> np.ndarray:
        """A number for each row, from `low` at visibility 0 to `high` at 1; shape (k,)."""
        return low + (high - low) * self.visibility

    def sides(self) -> np.ndarray:
        """-1 or 1 at random for each row; shape (k,)."""
        return self.rng.choice([-1, 1], len(self.rows))


def deform(anatomy: Anatomy, shown: Mapping[str, Shown]) -> Anatomy:
    """Change the shape of chests by their findings: a wide heart, a flat diaphragm, a lost volume.

    Args:
        anatomy: n chests; not changed.
        shown: Finding -> the chests that have it, for all findings.
    """
    anatomy = anatomy.copy()
    finding = shown["Cardiomegaly"]
    growth = finding.between(1.2, 1.55)
    anatomy.heart_width[finding.rows] *= growth
    anatomy.heart_height[finding.rows] *= 0.6 + 0.4 * growth
    finding = shown["Enlarged Cardiomediastinum"]
    growth = finding.between(1.25, 1.8)
    anatomy.mediastinum_width[finding.rows] *= growth
    anatomy.knob[finding.rows] *= np.sqrt(growth)
    finding = shown["Emphysema"]
    trapped = finding.between(0.3, 0.9)
    anatomy.right_base[finding.rows] += 0.16 * trapped
    anatomy.left_base[finding.rows] += 0.16 * trapped
    anatomy.dome[finding.rows] *= 1 - 0.85 * trapped
    anatomy.aeration[finding.rows] += 0.14 * trapped
    anatomy.heart_width[finding.rows] *= 1 - 0.2 * trapped
    anatomy.lung_width[finding.rows] += 0.03 * trapped
    anatomy.vessels[finding.rows] *= 1 - 0.6 * trapped
    finding = shown["Fibrosis"]
    loss = finding.between(0.02, 0.1)
    anatomy.right_base[finding.rows] -= loss
    anatomy.left_base[finding.rows] -= loss
    finding = shown["Edema"]
    anatomy.vessels[finding.rows] *= finding.between(1.1, 1.5)
    finding = shown["Atelectasis"]
    anatomy.collapse[finding.rows] = finding.sides() * finding.between(0.04, 0.14)
    finding = shown["Fracture"]
    rows, n = finding.rows, len(finding.rows)
    anatomy.break_at[rows] = finding.sides() * finding.rng.uniform(0.3, 0.52, n)
    anatomy.break_height[rows] = finding.rng.uniform(-0.4, 0.25, n)
    anatomy.break_step[rows] = finding.between(0.3, 0.5)
    return anatomy


def paint(chest: Chest, shown: Mapping[str, Shown]) -> None:
    """Add every finding to `chest.density`, in place.

    Args:
        chest: n chests, already deformed.
        shown: Finding -> the chests that have it, for all findings.
    """
    for name, painter in PAINTERS.items():
        finding = shown[name]
        if len(finding.rows):
            strength = _FAINTEST + (_PLAINEST - _FAINTEST) * per_picture(finding.visibility)
            if name in _REPLACING:
                strength = np.minimum(strength, 1)
            chest.density[finding.rows] += strength * painter(
                chest.select(finding.rows, finding.rng)
            )


def fracture(chest: Chest) -> np.ndarray:
    """Dark gaps and dense ends where the ribs are broken (the step in the ribs is in `deform`)."""
    anatomy = chest.anatomy
    across = np.abs(chest.x - per_picture(anatomy.break_at))
    ends = edge(0.15 - across, 0.05) - 1.5 * bump(across, 0.02)
    near = bump(chest.y - per_picture(anatomy.break_height), 0.12)
    return ends * near * posterior_ribs(anatomy, chest.x, chest.y) * chest.uniform(0.35, 0.65)


def hernia(chest: Chest) -> np.ndarray:
    """A round shadow behind the heart, air above a straight fluid level."""
    x = chest.uniform(-0.06, 0.16)
    radius = chest.uniform(0.09, 0.16)
    y = per_picture(chest.anatomy.right_base) - radius + chest.uniform(-0.03, 0.05)
    distance = chest.distance_from(x, y, 1.15)
    inside = edge(radius - distance, 0.03)
    fluid = edge(chest.y - y - radius * chest.uniform(0.0, 0.5), 0.03)
    level = HEART_DENSITY + 0.1 - (1 - fluid) * chest.uniform(0.4, 0.9)
    wall = 0.3 * bump(distance - radius, 0.02)
    return inside * (level - chest.density) + wall


def pleural_effusion(chest: Chest) -> np.ndarray:
    """Fluid with a meniscus that fills the costophrenic angle and rises along the wall."""
    anatomy = chest.anatomy
    depth = 0.5 * np.power(chest.uniform(0, 1), 2.5)
    surface = per_picture(anatomy.right_base) + 0.07 - depth
    surface = surface - chest.uniform(0.12, 0.2) * np.power(chest.a / 0.62, 4)
    fluid = edge(chest.y - surface, 0.06) * chest.thorax * chest.sides(0.3)
    return fluid * np.maximum(0.95 * ABDOMEN_DENSITY - chest.density, 0)


def pleural_other(chest: Chest) -> np.ndarray:
    """Calcified plaques: very dense jagged patches, and a bright rind on dome and wall."""
    anatomy = chest.anatomy
    jagged = 0.5 * chest.noise(24)
    total = np.zeros_like(chest.density)
    for shown in (True, chest.pick(0.6)):
        x, y = chest.spot(0.3, 0.8)
        distance = chest.distance_from(x, y, 1.8) / chest.uniform(0.045, 0.08)
        total = np.maximum(total, edge(1 - distance + jagged, 0.5) * shown)
    dome = bump(chest.y - chest.diaphragm + 0.02, 0.016) * edge(0.16 - np.abs(chest.a - 0.36), 0.1)
    wall = bump(lung_border(anatomy, chest.y) - chest.a - 0.035, 0.014)
    wall = wall * bump(chest.y - 0.1, 0.14)
    rind = np.maximum(dome * chest.pick(0.7), wall * chest.pick(0.6)) * chest.sides(0.5)
    return np.maximum(total, rind) * chest.uniform(0.5, 1.1) * chest.thorax


def pleural_thickening(chest: Chest) -> np.ndarray:
    """A soft-tissue band along the apex or the lateral wall."""
    gap = chest.uniform(0.07, 0.14)
    inner = chest.shrunken_lung(1.4 * gap, gap)
    band = edge(chest.a - inner + 0.02 * chest.noise(10), 0.03)
    apex = per_picture(chest.anatomy.apex)
    apical = edge(apex + chest.uniform(0.25, 0.5) - chest.y, 0.15)
    lateral = bump(chest.y - chest.uniform(-0.3, 0.1), 0.22)
    band *= np.where(chest.pick(0.65), apical, lateral)
    return band * chest.sides(0.35) * chest.uniform(0.45, 0.9) * chest.lung


def pneumothorax(chest: Chest) -> np.ndarray:
    """Black rim without vessels, a thin pleural line, and a denser collapsed lung."""
    pixel = 2 / chest.size
    gap, drop = chest.uniform(0.04, 0.16), chest.uniform(0.08, 0.3)
    visceral = chest.shrunken_lung(drop, gap)
    side = chest.sides()
    collapsed = edge(visceral - chest.a, 1.5 * pixel)
    air = (1 - collapsed) * chest.lung * side
    line = edge(0.045 - np.abs(chest.a - visceral + 0.02), 0.04) * chest.lung * side
    removed = -chest.markings - chest.uniform(0.06, 0.18)
    return air * removed + 0.22 * line + 0.4 * gap * collapsed * chest.lung * side


def support_devices(chest: Chest) -> np.ndarray:
    """Metal and tubes: at least one of a pacemaker, lines, a tube, electrodes, sternal wires."""
    n = len(chest)
    devices = (_pacemaker, _central_line, _endotracheal_tube, _electrodes, _sternal_wires)
    chosen = chest.rng.random((len(devices), n)) < 0.2
    chosen[chest.rng.integers(len(devices), size=n), np.arange(n)] = True
    total = np.zeros_like(chest.density)
    for device, shown in zip(devices, chosen, strict=True):
        total = np.maximum(total, device(chest) * shown[:, None, None])
    return total * chest.uniform(0.45, 1.2)


def _near(chest: Chest, value: float, deviation: float = 0.03) -> np.ndarray:
    """Values scattered around one: shape (n,)."""
    return value + deviation * chest.rng.standard_normal(len(chest))


def _pacemaker(chest: Chest) -> np.ndarray:
    """A case below a clavicle and a lead to the tip of the right ventricle."""
    side = chest.rng.choice([-1, 1], len(chest))
    x, y = side * _near(chest, 0.5), _near(chest, -0.45)
    sideways = np.abs(chest.x - per_picture(x)) - 0.07
    case = edge(0.015 - np.maximum(sideways, np.abs(chest.y - per_picture(y)) - 0.05), 0.03)
    atrium = _near(chest, -0.25), _near(chest, 0.1)
    tip = _near(chest, 0.2), _near(chest, 0.33)
    lead = curve((x, y), (side * 0.1, y - 0.3), atrium, tip, samples=2 * chest.size)
    return np.maximum(case, 0.8 * chest.draw_lines(lead, 0.02))


def _central_line(chest: Chest) -> np.ndarray:
    """A catheter from the neck to the superior vena cava."""
    side = chest.rng.choice([-1, 1], len(chest))
    entry, neck = (side * _near(chest, 0.3), -1.0), (side * _near(chest, 0.25), -0.5)
    vein = _near(chest, -0.12), _near(chest, -0.5)
    tip = _near(chest, -0.12), _near(chest, 0.0, 0.08)
    return 0.75 * chest.draw_lines(curve(entry, neck, vein, tip, samples=2 * chest.size), 0.02)


def _endotracheal_tube(chest: Chest) -> np.ndarray:
    """The two walls of a tube in the trachea."""
    end = _near(chest, -0.3, 0.05)
    walls = [curve((x, -1.05), (x, end), samples=chest.size) for x in (-0.025, 0.025)]
    return 0.7 * chest.draw_lines(np.concatenate(walls, axis=1), 0.015)


def _electrodes(chest: Chest) -> np.ndarray:
    """Three pads on the skin with cables that leave at the bottom."""
    total = np.zeros_like(chest.density)
    for across, down in ((-0.45, -0.35), (0.4, -0.1), (0.3, 0.4)):
        x, y = _near(chest, across, 0.08), _near(chest, down, 0.08)
        pad = edge(0.035 - chest.distance_from(per_picture(x), per_picture(y)), 0.03)
        bend = _near(chest, 0.0, 0.3), _near(chest, 0.3, 0.3)
        cable = curve((x, y), bend, (_near(chest, 0.5, 0.4), 1.05), samples=2 * chest.size)
        total = np.maximum(total, np.maximum(pad, 0.5 * chest.draw_lines(cable, 0.01)))
    return total


def _sternal_wires(chest: Chest) -> np.ndarray:
    """Five loops of wire one below the other in the midline."""
    turn = np.linspace(0, 2 * np.pi, chest.size)
    loops = []
    for height in (-0.5, -0.36, -0.22, -0.08, 0.06):
        x, y = _near(chest, 0.0, 0.008)[:, None], _near(chest, height, 0.008)[:, None]
        loops.append(np.stack([x + 0.045 * np.cos(turn), y + 0.025 * np.sin(turn)], axis=-1))
    return 0.8 * chest.draw_lines(np.concatenate(loops, axis=1), 0.01)


PAINTERS: Mapping[str, Callable[[Chest], np.ndarray]] = {
    "Emphysema": lung_findings.emphysema,
    "Fibrosis": lung_findings.fibrosis,
    "Infiltration": lung_findings.infiltration,
    "Lung Opacity": lung_findings.lung_opacity,
    "Edema": lung_findings.edema,
    "Pneumonia": lung_findings.pneumonia,
    "Consolidation": lung_findings.consolidation,
    "Atelectasis": lung_findings.atelectasis,
    "Nodule": lung_findings.nodule,
    "Mass": lung_findings.mass,
    "Lung Lesion": lung_findings.lung_lesion,
    "Pleural Thickening": pleural_thickening,
    "Pneumothorax": pneumothorax,
    "Pleural Effusion": pleural_effusion,
    "Pleural Other": pleural_other,
    "Hernia": hernia,
    "Fracture": fracture,
    "Support Devices": support_devices,
}
"""Finding -> painter, in the order in which they are painted."""
