"""The 20 findings of the union, drawn on a chest.

Two steps: `deform` changes the shape of the chest where a finding does that (a wide heart, a flat
diaphragm, volume loss), then `paint` adds density to pixels, by one painter per finding. Side,
place, size and strength are random; weak examples are hard to see, as they are in the clinic.
"""

from collections.abc import Callable, Mapping

import numpy as np

from cxr_study.phantom.anatomy import (
    ABDOMEN_DENSITY,
    HEART_DENSITY,
    Anatomy,
    Chest,
    lung_border,
    posterior_ribs,
)
from cxr_study.phantom.canvas import (
    bump,
    curve,
    edge,
    per_picture,
    pick,
    smooth_noise,
    trace,
    uniform,
)

Painter = Callable[[Chest, np.random.Generator], np.ndarray]


def deform(
    anatomy: Anatomy, present: Mapping[str, np.ndarray], rngs: Mapping[str, np.random.Generator]
) -> Anatomy:
    """Change the shape of the chests that have a finding which does so.

    Args:
        anatomy: Chests without findings.
        present: For each finding the indices of the chests that have it.
        rngs: One source of randomness per finding.

    Returns:
        The changed anatomy.
    """

    def between(name: str, low: float, high: float) -> np.ndarray:
        return rngs[name].uniform(low, high, len(present[name]))

    rows = present["Cardiomegaly"]
    growth = between("Cardiomegaly", 1.2, 1.55)
    anatomy = anatomy.change(
        rows,
        heart_width=anatomy.heart_width[rows] * growth,
        heart_height=anatomy.heart_height[rows] * (0.6 + 0.4 * growth),
    )
    rows = present["Enlarged Cardiomediastinum"]
    growth = between("Enlarged Cardiomediastinum", 1.25, 1.8)
    anatomy = anatomy.change(
        rows,
        mediastinum_width=anatomy.mediastinum_width[rows] * growth,
        knob=anatomy.knob[rows] * np.sqrt(growth),
    )
    rows = present["Emphysema"]
    trapped = between("Emphysema", 0.3, 0.9)
    anatomy = anatomy.change(
        rows,
        right_base=anatomy.right_base[rows] + 0.16 * trapped,
        left_base=anatomy.left_base[rows] + 0.16 * trapped,
        dome=anatomy.dome[rows] * (1 - 0.85 * trapped),
        aeration=anatomy.aeration[rows] + 0.14 * trapped,
        heart_width=anatomy.heart_width[rows] * (1 - 0.2 * trapped),
        lung_width=anatomy.lung_width[rows] + 0.03 * trapped,
        vessels=anatomy.vessels[rows] * (1 - 0.6 * trapped),
    )
    rows = present["Fibrosis"]
    loss = between("Fibrosis", 0.02, 0.1)
    anatomy = anatomy.change(
        rows,
        right_base=anatomy.right_base[rows] - loss,
        left_base=anatomy.left_base[rows] - loss,
    )
    rows = present["Edema"]
    congestion = between("Edema", 1.1, 1.5)
    anatomy = anatomy.change(rows, vessels=anatomy.vessels[rows] * congestion)
    rows = present["Atelectasis"]
    side = rngs["Atelectasis"].choice([-1, 1], len(rows))
    anatomy = anatomy.change(rows, collapse=side * between("Atelectasis", 0.04, 0.14))
    rows = present["Fracture"]
    side = rngs["Fracture"].choice([-1, 1], len(rows))
    return anatomy.change(
        rows,
        break_at=side * between("Fracture", 0.3, 0.52),
        break_height=between("Fracture", -0.4, 0.25),
        break_step=between("Fracture", 0.3, 0.5),
    )


def paint(
    chest: Chest, present: Mapping[str, np.ndarray], rngs: Mapping[str, np.random.Generator]
) -> None:
    """Add every finding to `chest.density`, in place.

    Args:
        chest: Drawn chests, already deformed.
        present: For each finding the indices of the chests that have it.
        rngs: One source of randomness per finding.
    """
    for name, painter in PAINTERS.items():
        rows = present[name]
        if len(rows):
            chest.density[rows] += painter(chest.take(rows), rngs[name])


def _sides(chest: Chest, rng: np.random.Generator, both: float = 0.0) -> np.ndarray:
    """1 on a random side of each chest, with probability `both` on both sides; (n, size, size)."""
    n = len(chest)
    return ((chest.left == pick(rng, n)) | pick(rng, n, both)).astype(np.float32)


def _spot(
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


def _distance(
    chest: Chest, x: np.ndarray, y: np.ndarray, aspect: float | np.ndarray = 1.0
) -> np.ndarray:
    """Distance of each pixel from (x, y), with x stretched by `aspect`."""
    return np.sqrt(np.square((chest.x - x) / aspect) + np.square(chest.y - y))


def _draw_lines(chest: Chest, points: np.ndarray, width: float) -> np.ndarray:
    """Trace point sequences (n, samples, 2) given in chest coordinates."""
    anatomy = chest.anatomy
    x, y = points[..., 0], points[..., 1]
    centre, tilt, scale = (
        value[:, None] for value in (anatomy.centre, anatomy.tilt, anatomy.magnification)
    )
    on_picture = np.stack([(x + tilt * y) * scale + centre, (y - 0.02) * scale], axis=-1)
    return trace(on_picture, chest.size, width)


def _shrunken_lung(chest: Chest, drop: np.ndarray, gap: np.ndarray) -> np.ndarray:
    """Lateral border of a lung whose apex is `drop` lower and whose side is `gap` further in."""
    everyone = np.arange(len(chest))
    smaller = chest.anatomy.change(
        everyone,
        apex=chest.anatomy.apex + drop[:, 0, 0],
        lung_width=chest.anatomy.lung_width - gap[:, 0, 0],
    )
    return lung_border(smaller, chest.y)


def atelectasis(chest: Chest, rng: np.random.Generator) -> np.ndarray:
    """One or two dense plates near the base, on the side that lost volume."""
    n = len(chest)
    side = np.sign(per_picture(chest.anatomy.collapse))
    total = np.zeros_like(chest.density)
    for shown in (np.ones((n, 1, 1), bool), pick(rng, n, 0.4)):
        x, y = _spot(chest, rng, 0.55, 0.85, side)
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
    lobe *= _sides(chest, rng) * edge(chest.a - uniform(rng, n, 0.0, 0.2), 0.12)
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
    kerley = _draw_lines(chest, np.concatenate(lines, axis=1), 0.02)
    return strength * (haze * chest.lung + 0.3 * kerley * chest.thorax)


def emphysema(chest: Chest, rng: np.random.Generator) -> np.ndarray:
    """Thin-walled bullae in the upper zones (the large dark lungs are in `deform`)."""
    n = len(chest)
    total = np.zeros_like(chest.density)
    for shown in (pick(rng, n, 0.7), pick(rng, n, 0.4)):
        x, y = _spot(chest, rng, 0.15, 0.5)
        radius = uniform(rng, n, 0.08, 0.15)
        distance = _distance(chest, x, y)
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


def fracture(chest: Chest, rng: np.random.Generator) -> np.ndarray:
    """Dark gaps and dense ends where the ribs are broken (the step in the ribs is in `deform`)."""
    anatomy, n = chest.anatomy, len(chest)
    across = np.abs(chest.x - per_picture(anatomy.break_at))
    ends = edge(0.15 - across, 0.05) - 1.5 * bump(across, 0.02)
    near = bump(chest.y - per_picture(anatomy.break_height), 0.12)
    return ends * near * posterior_ribs(anatomy, chest.x, chest.y) * uniform(rng, n, 0.35, 0.65)


def hernia(chest: Chest, rng: np.random.Generator) -> np.ndarray:
    """A round shadow behind the heart, air above a straight fluid level."""
    n = len(chest)
    x = uniform(rng, n, -0.06, 0.16)
    radius = uniform(rng, n, 0.09, 0.16)
    y = per_picture(chest.anatomy.right_base) - radius + uniform(rng, n, -0.03, 0.05)
    distance = _distance(chest, x, y, 1.15)
    inside = edge(radius - distance, 0.03)
    fluid = edge(chest.y - y - radius * uniform(rng, n, 0.0, 0.5), 0.03)
    level = HEART_DENSITY + 0.1 - (1 - fluid) * uniform(rng, n, 0.2, 0.6)
    wall = 0.15 * bump(distance - radius, 0.02)
    return inside * (level - chest.density) + wall


def infiltration(chest: Chest, rng: np.random.Generator) -> np.ndarray:
    """Faint fine mottling over a zone of one or both lungs."""
    n = len(chest)
    x, y = _spot(chest, rng, 0.25, 0.8)
    mirrored = np.where(pick(rng, n, 0.5), np.abs(chest.x) - np.abs(x), chest.x - x)
    zone = bump(mirrored, 0.28) * bump(chest.y - y, 0.3)
    grains = np.clip(smooth_noise(rng, n, chest.size, 30) + 0.2, 0, 2)
    return zone * grains * uniform(rng, n, 0.2, 0.42) * chest.lung


def lung_lesion(chest: Chest, rng: np.random.Generator) -> np.ndarray:
    """A cavity: a thick ring around air, sometimes with fluid in it."""
    n = len(chest)
    x, y = _spot(chest, rng, 0.15, 0.75)
    radius = uniform(rng, n, 0.085, 0.15)
    distance = _distance(chest, x, y, uniform(rng, n, 0.85, 1.2))
    inside = edge(radius - distance, 0.03)
    ring = edge(uniform(rng, n, 0.018, 0.03) - np.abs(distance - radius), 0.03)
    fluid = pick(rng, n, 0.4) * edge(chest.y - y - 0.3 * radius, 0.03) * inside
    strength = uniform(rng, n, 0.35, 0.75)
    cavity = strength * np.maximum(ring, 0.8 * fluid) - 0.12 * inside * (1 - ring)
    return cavity * (0.3 * chest.thorax + 0.7 * chest.lung)


def lung_opacity(chest: Chest, rng: np.random.Generator) -> np.ndarray:
    """A broad even veil over much of one lung, sometimes of both."""
    n = len(chest)
    x, y = _spot(chest, rng, 0.2, 0.8)
    mirrored = np.where(pick(rng, n, 0.25), np.abs(chest.x) - np.abs(x), chest.x - x)
    veil = np.square(mirrored / 0.38) + np.square((chest.y - y) / uniform(rng, n, 0.3, 0.5))
    veil = edge(1 - np.sqrt(veil), 0.9) * edge(mirrored * np.sign(x) + 0.5, 0.3)
    return veil * (uniform(rng, n, 0.18, 0.5) - 0.4 * chest.markings) * chest.lung


def mass(chest: Chest, rng: np.random.Generator) -> np.ndarray:
    """One large dense lobulated shadow."""
    n = len(chest)
    x, y = _spot(chest, rng, 0.15, 0.8)
    radius = uniform(rng, n, 0.11, 0.19)
    distance = _distance(chest, x, y)
    angle = np.arctan2(chest.y - y, chest.x - x)
    lobes = 1 + 0.1 * np.cos(3 * angle + uniform(rng, n, 0, 6)) + 0.05 * np.cos(7 * angle)
    ball = np.sqrt(np.clip(1 - np.square(distance / (radius * lobes)), 0, 1))
    return ball * uniform(rng, n, 0.45, 0.95) * (0.25 * chest.thorax + 0.75 * chest.lung)


def nodule(chest: Chest, rng: np.random.Generator) -> np.ndarray:
    """One to three small round dense spots."""
    n = len(chest)
    total = np.zeros_like(chest.density)
    for shown in (np.ones((n, 1, 1), bool), pick(rng, n, 0.5), pick(rng, n, 0.3)):
        x, y = _spot(chest, rng, 0.12, 0.85)
        disc = edge(uniform(rng, n, 0.04, 0.065) - _distance(chest, x, y), 0.035)
        total = np.maximum(total, disc * uniform(rng, n, 0.35, 0.7) * shown)
    return total * chest.lung


def pleural_effusion(chest: Chest, rng: np.random.Generator) -> np.ndarray:
    """Fluid with a meniscus that fills the costophrenic angle and rises along the wall."""
    n, anatomy = len(chest), chest.anatomy
    depth = 0.5 * np.power(uniform(rng, n, 0, 1), 2.5)
    surface = per_picture(anatomy.right_base) + 0.07 - depth
    surface = surface - uniform(rng, n, 0.12, 0.2) * np.power(chest.a / 0.62, 4)
    fluid = edge(chest.y - surface, 0.06) * chest.thorax * _sides(chest, rng, 0.3)
    return fluid * np.maximum(0.95 * ABDOMEN_DENSITY - chest.density, 0)


def pleural_other(chest: Chest, rng: np.random.Generator) -> np.ndarray:
    """Calcified plaques: very dense jagged patches, and a bright rind on dome and wall."""
    n, anatomy = len(chest), chest.anatomy
    jagged = 0.5 * smooth_noise(rng, n, chest.size, 24)
    total = np.zeros_like(chest.density)
    for shown in (np.ones((n, 1, 1), bool), pick(rng, n, 0.6)):
        x, y = _spot(chest, rng, 0.3, 0.8)
        distance = _distance(chest, x, y, 1.8) / uniform(rng, n, 0.045, 0.08)
        total = np.maximum(total, edge(1 - distance + jagged, 0.5) * shown)
    dome = bump(chest.y - chest.diaphragm + 0.02, 0.016) * edge(0.16 - np.abs(chest.a - 0.36), 0.1)
    wall = bump(lung_border(anatomy, chest.y) - chest.a - 0.035, 0.014)
    wall = wall * bump(chest.y - 0.1, 0.14)
    rind = np.maximum(dome * pick(rng, n, 0.7), wall * pick(rng, n, 0.6)) * _sides(chest, rng, 0.5)
    return np.maximum(total, rind) * uniform(rng, n, 0.5, 1.1) * chest.thorax


def pleural_thickening(chest: Chest, rng: np.random.Generator) -> np.ndarray:
    """A soft-tissue band along the apex or the lateral wall."""
    n = len(chest)
    gap = uniform(rng, n, 0.07, 0.14)
    inner = _shrunken_lung(chest, 1.4 * gap, gap)
    band = edge(chest.a - inner + 0.02 * smooth_noise(rng, n, chest.size, 10), 0.03)
    apex = per_picture(chest.anatomy.apex)
    apical = edge(apex + uniform(rng, n, 0.25, 0.5) - chest.y, 0.15)
    lateral = bump(chest.y - uniform(rng, n, -0.3, 0.1), 0.22)
    band *= np.where(pick(rng, n, 0.65), apical, lateral)
    return band * _sides(chest, rng, 0.35) * uniform(rng, n, 0.45, 0.9) * chest.lung


def pneumonia(chest: Chest, rng: np.random.Generator) -> np.ndarray:
    """A cluster of ill-defined fluffy patches."""
    n = len(chest)
    x, y = _spot(chest, rng, 0.35, 0.85)
    fluff = np.zeros_like(chest.density)
    for spread in (0.0, 0.12, 0.16):
        dx, dy = spread * uniform(rng, n, -1, 1), spread * uniform(rng, n, -1, 1)
        patch = bump(_distance(chest, x + dx, y + dy), uniform(rng, n, 0.06, 0.11))
        fluff = np.maximum(fluff, patch)
    fluff = np.clip(fluff * (1 + 0.4 * smooth_noise(rng, n, chest.size, 14)), 0, 1.3)
    return fluff * uniform(rng, n, 0.3, 0.65) * chest.lung


def pneumothorax(chest: Chest, rng: np.random.Generator) -> np.ndarray:
    """Black rim without vessels, a thin pleural line, and a denser collapsed lung."""
    n, pixel = len(chest), 2 / chest.size
    gap, drop = uniform(rng, n, 0.04, 0.16), uniform(rng, n, 0.08, 0.3)
    visceral = _shrunken_lung(chest, drop, gap)
    side = _sides(chest, rng)
    collapsed = edge(visceral - chest.a, 1.5 * pixel)
    air = (1 - collapsed) * chest.lung * side
    line = edge(0.045 - np.abs(chest.a - visceral + 0.02), 0.04) * chest.lung * side
    removed = -chest.markings - uniform(rng, n, 0.06, 0.18)
    return air * removed + 0.22 * line + 0.4 * gap * collapsed * chest.lung * side


def support_devices(chest: Chest, rng: np.random.Generator) -> np.ndarray:
    """Metal and tubes: at least one of a pacemaker, lines, a tube, electrodes, sternal wires."""
    n = len(chest)
    devices = (_pacemaker, _central_line, _endotracheal_tube, _electrodes, _sternal_wires)
    chosen = rng.random((len(devices), n)) < 0.2
    chosen[rng.integers(len(devices), size=n), np.arange(n)] = True
    total = np.zeros_like(chest.density)
    for device, shown in zip(devices, chosen, strict=True):
        total = np.maximum(total, device(chest, rng) * shown[:, None, None])
    return total * uniform(rng, n, 0.45, 1.2)


def _near(rng: np.random.Generator, n: int, value: float, deviation: float = 0.03) -> np.ndarray:
    """Values scattered around one: shape (n,)."""
    return value + deviation * rng.standard_normal(n)


def _pacemaker(chest: Chest, rng: np.random.Generator) -> np.ndarray:
    """A case below a clavicle and a lead to the tip of the right ventricle."""
    n = len(chest)
    side = rng.choice([-1, 1], n)
    x, y = side * _near(rng, n, 0.5), _near(rng, n, -0.45)
    beside = np.abs(chest.x - per_picture(x)) - 0.07
    case = edge(0.015 - np.maximum(beside, np.abs(chest.y - per_picture(y)) - 0.05), 0.03)
    atrium = _near(rng, n, -0.25), _near(rng, n, 0.1)
    tip = _near(rng, n, 0.2), _near(rng, n, 0.33)
    lead = curve((x, y), (side * 0.1, y - 0.3), atrium, tip, samples=2 * chest.size)
    return np.maximum(case, 0.8 * _draw_lines(chest, lead, 0.02))


def _central_line(chest: Chest, rng: np.random.Generator) -> np.ndarray:
    """A catheter from the neck to the superior vena cava."""
    n = len(chest)
    side = rng.choice([-1, 1], n)
    entry, neck = (side * _near(rng, n, 0.3), -1.0), (side * _near(rng, n, 0.25), -0.5)
    vein = _near(rng, n, -0.12), _near(rng, n, -0.5)
    tip = _near(rng, n, -0.12), _near(rng, n, 0.0, 0.08)
    catheter = curve(entry, neck, vein, tip, samples=2 * chest.size)
    return 0.75 * _draw_lines(chest, catheter, 0.02)


def _endotracheal_tube(chest: Chest, rng: np.random.Generator) -> np.ndarray:
    """The two walls of a tube in the trachea."""
    end = _near(rng, len(chest), -0.3, 0.05)
    walls = [curve((x, -1.05), (x, end), samples=chest.size) for x in (-0.025, 0.025)]
    return 0.7 * _draw_lines(chest, np.concatenate(walls, axis=1), 0.015)


def _electrodes(chest: Chest, rng: np.random.Generator) -> np.ndarray:
    """Three pads on the skin with cables that leave at the bottom."""
    n = len(chest)
    total = np.zeros_like(chest.density)
    for across, down in ((-0.45, -0.35), (0.4, -0.1), (0.3, 0.4)):
        x, y = _near(rng, n, across, 0.08), _near(rng, n, down, 0.08)
        pad = edge(0.035 - _distance(chest, per_picture(x), per_picture(y)), 0.03)
        bend = _near(rng, n, 0.0, 0.3), _near(rng, n, 0.3, 0.3)
        cable = curve((x, y), bend, (_near(rng, n, 0.5, 0.4), 1.05), samples=2 * chest.size)
        total = np.maximum(total, np.maximum(pad, 0.5 * _draw_lines(chest, cable, 0.01)))
    return total


def _sternal_wires(chest: Chest, rng: np.random.Generator) -> np.ndarray:
    """Five loops of wire one below the other in the midline."""
    n = len(chest)
    turn = np.linspace(0, 2 * np.pi, chest.size)
    loops = []
    for height in (-0.5, -0.36, -0.22, -0.08, 0.06):
        x, y = _near(rng, n, 0.0, 0.008)[:, None], _near(rng, n, height, 0.008)[:, None]
        loops.append(np.stack([x + 0.045 * np.cos(turn), y + 0.025 * np.sin(turn)], axis=-1))
    return 0.8 * _draw_lines(chest, np.concatenate(loops, axis=1), 0.01)


PAINTERS: Mapping[str, Painter] = {
    "Emphysema": emphysema,
    "Fibrosis": fibrosis,
    "Infiltration": infiltration,
    "Lung Opacity": lung_opacity,
    "Edema": edema,
    "Pneumonia": pneumonia,
    "Consolidation": consolidation,
    "Atelectasis": atelectasis,
    "Nodule": nodule,
    "Mass": mass,
    "Lung Lesion": lung_lesion,
    "Pleural Thickening": pleural_thickening,
    "Pneumothorax": pneumothorax,
    "Pleural Effusion": pleural_effusion,
    "Pleural Other": pleural_other,
    "Hernia": hernia,
    "Fracture": fracture,
    "Support Devices": support_devices,
}
