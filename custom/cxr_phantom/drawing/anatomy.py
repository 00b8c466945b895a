"""The build of a patient's chest and the findings that show in it."""

from dataclasses import dataclass, fields, replace

import numpy as np

from cxr_phantom.drawing.canvas import per_picture


@dataclass(frozen=True)
class Anatomy:
    """Shape of n chests, every field of shape (n,), in units in which the picture spans 2 x 2.

    Right and left are the patient's: the right lung is drawn on the left. `collapse` (volume lost
    by a lung, negative for the right one) and `break_*` (a step in the ribs) are 0 in health.
    """

    female: np.ndarray
    centre: np.ndarray
    tilt: np.ndarray
    rotation: np.ndarray
    magnification: np.ndarray
    apex: np.ndarray
    lung_width: np.ndarray
    right_base: np.ndarray
    left_base: np.ndarray
    dome: np.ndarray
    wall: np.ndarray
    aeration: np.ndarray
    heart_width: np.ndarray
    heart_height: np.ndarray
    mediastinum_width: np.ndarray
    shift: np.ndarray
    knob: np.ndarray
    rib_spacing: np.ndarray
    rib_start: np.ndarray
    rib_slope: np.ndarray
    rib_contrast: np.ndarray
    vessels: np.ndarray
    vessel_phase: np.ndarray
    gas: np.ndarray
    collapse: np.ndarray
    break_at: np.ndarray
    break_height: np.ndarray
    break_step: np.ndarray

    def __len__(self) -> int:
        return len(self.centre)

    def take(self, rows: np.ndarray) -> "Anatomy":
        """The chests at the given indices, which may repeat."""
        return Anatomy(**{field.name: getattr(self, field.name)[rows] for field in fields(self)})

    def per_picture(self) -> dict[str, np.ndarray]:
        """Every field as (n, 1, 1); see `canvas.per_picture`."""
        return {field.name: per_picture(getattr(self, field.name)) for field in fields(self)}

    def change(self, rows: np.ndarray, **values: np.ndarray) -> "Anatomy":
        """A copy in which the named fields have new values at the given rows."""
        changed = {}
        for name, value in values.items():
            changed[name] = getattr(self, name).copy()
            changed[name][rows] = value
        return replace(self, **changed)


@dataclass(frozen=True)
class Shown:
    """One finding in some of n chests: its rows, how plainly (0 to 1) it shows, its randomness."""

    rows: np.ndarray
    visibility: np.ndarray
    rng: np.random.Generator


def sample_anatomy(n: int, rng: np.random.Generator) -> Anatomy:
    """Draw the chests of n different patients as in a PA view at full inspiration."""

    def normal(mean: float, deviation: float) -> np.ndarray:
        return mean + deviation * np.clip(rng.standard_normal(n), -2, 2)

    base = normal(0.46, 0.06)
    female = (rng.random(n) < 0.46).astype(float)
    return Anatomy(
        female=female,
        centre=normal(0, 0.025),
        tilt=normal(0, 0.025),
        rotation=normal(0, 0.05),
        magnification=normal(1, 0.05) - 0.03 * female,
        apex=normal(-0.76, 0.03),
        lung_width=normal(0.66, 0.04),
        right_base=base,
        left_base=base + normal(0.05, 0.02),
        dome=normal(0.95, 0.25),
        wall=normal(0.14, 0.04),
        aeration=normal(1, 0.08),
        heart_width=normal(0.3, 0.03),
        heart_height=normal(0.3, 0.03),
        mediastinum_width=normal(0.125, 0.016),
        shift=normal(0, 0.012),
        knob=normal(0.075, 0.015),
        rib_spacing=normal(0.155, 0.012),
        rib_start=rng.random(n),
        rib_slope=normal(0.5, 0.1),
        rib_contrast=normal(0.16, 0.035),
        vessels=normal(0.2, 0.03),
        vessel_phase=rng.uniform(0, 2 * np.pi, n),
        gas=rng.random(n),
        collapse=np.zeros(n),
        break_at=np.zeros(n),
        break_height=np.zeros(n),
        break_step=np.zeros(n),
    )


def vary_exposure_of(anatomy: Anatomy, rng: np.random.Generator) -> Anatomy:
    """The same chests at another visit: other position and depth of inspiration, same build."""
    n = len(anatomy)
    breath = 0.03 * rng.standard_normal(n)
    return replace(
        anatomy,
        centre=anatomy.centre + 0.02 * rng.standard_normal(n),
        tilt=anatomy.tilt + 0.012 * rng.standard_normal(n),
        rotation=anatomy.rotation + 0.02 * rng.standard_normal(n),
        right_base=anatomy.right_base + breath,
        left_base=anatomy.left_base + breath,
        gas=rng.random(n),
    )
