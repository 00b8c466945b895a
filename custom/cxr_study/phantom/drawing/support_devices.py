"""Metal and tubes."""

import numpy as np

from cxr_study.phantom.drawing.canvas import (
    curve,
    edge,
    per_picture,
    uniform,
)
from cxr_study.phantom.drawing.chest import (
    Chest,
)
from cxr_study.phantom.drawing.placement import distance_from, draw_lines


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
    return np.maximum(case, 0.8 * draw_lines(chest, lead, 0.02))


def _central_line(chest: Chest, rng: np.random.Generator) -> np.ndarray:
    """A catheter from the neck to the superior vena cava."""
    n = len(chest)
    side = rng.choice([-1, 1], n)
    entry, neck = (side * _near(rng, n, 0.3), -1.0), (side * _near(rng, n, 0.25), -0.5)
    vein = _near(rng, n, -0.12), _near(rng, n, -0.5)
    tip = _near(rng, n, -0.12), _near(rng, n, 0.0, 0.08)
    catheter = curve(entry, neck, vein, tip, samples=2 * chest.size)
    return 0.75 * draw_lines(chest, catheter, 0.02)


def _endotracheal_tube(chest: Chest, rng: np.random.Generator) -> np.ndarray:
    """The two walls of a tube in the trachea."""
    end = _near(rng, len(chest), -0.3, 0.05)
    walls = [curve((x, -1.05), (x, end), samples=chest.size) for x in (-0.025, 0.025)]
    return 0.7 * draw_lines(chest, np.concatenate(walls, axis=1), 0.015)


def _electrodes(chest: Chest, rng: np.random.Generator) -> np.ndarray:
    """Three pads on the skin with cables that leave at the bottom."""
    n = len(chest)
    total = np.zeros_like(chest.density)
    for across, down in ((-0.45, -0.35), (0.4, -0.1), (0.3, 0.4)):
        x, y = _near(rng, n, across, 0.08), _near(rng, n, down, 0.08)
        pad = edge(0.035 - distance_from(chest, per_picture(x), per_picture(y)), 0.03)
        bend = _near(rng, n, 0.0, 0.3), _near(rng, n, 0.3, 0.3)
        cable = curve((x, y), bend, (_near(rng, n, 0.5, 0.4), 1.05), samples=2 * chest.size)
        total = np.maximum(total, np.maximum(pad, 0.5 * draw_lines(chest, cable, 0.01)))
    return total


def _sternal_wires(chest: Chest, rng: np.random.Generator) -> np.ndarray:
    """Five loops of wire one below the other in the midline."""
    n = len(chest)
    turn = np.linspace(0, 2 * np.pi, chest.size)
    loops = []
    for height in (-0.5, -0.36, -0.22, -0.08, 0.06):
        x, y = _near(rng, n, 0.0, 0.008)[:, None], _near(rng, n, height, 0.008)[:, None]
        loops.append(np.stack([x + 0.045 * np.cos(turn), y + 0.025 * np.sin(turn)], axis=-1))
    return 0.8 * draw_lines(chest, np.concatenate(loops, axis=1), 0.01)
