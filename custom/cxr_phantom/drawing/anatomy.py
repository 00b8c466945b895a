"""The anatomy of a patient's chest, with the findings that change its shape."""

from typing import Any

import numpy as np

from cxr_phantom.drawing.canvas import per_picture

Anatomy = np.recarray[Any, Any]
"""Shape of n chests, every field of shape (n,), in units in which the picture spans 2 x 2.

Right and left are the patient's: the right lung is drawn on the left. `collapse` (volume lost by a
lung, negative for the right one) and `break_*` (a step in the ribs) are 0 in health. Indices choose
chests; see `sample_anatomy` for the fields.
"""


def fields_per_picture(anatomy: Anatomy) -> dict[str, np.ndarray]:
    """Every field as (n, 1, 1), to broadcast over pictures; see `canvas.per_picture`."""
    return {name: per_picture(anatomy[name]) for name in anatomy.dtype.names}


def sample_anatomy(n: int, rng: np.random.Generator) -> Anatomy:
    """Draw the chests of n different patients as in a PA view at full inspiration.

    Normal values are cut at two standard deviations.

    Args:
        n: Number of patients.
        rng: Source of randomness.

    Returns:
        n chests without findings. Fields are in picture units, but for: female (0 or 1);
        magnification and aeration (factors); tilt, rotation, dome and rib_slope (coefficients);
        rib_start (share of the spacing); rib_contrast and vessels (densities); vessel_phase
        (radians); gas (in the stomach, 0 to 1).
    """

    def normal(mean: float, deviation: float) -> np.ndarray:
        return mean + deviation * np.clip(rng.standard_normal(n), -2, 2)

    base = normal(0.46, 0.06)
    female = (rng.random(n) < 0.46).astype(float)
    fields = dict(
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
    return np.rec.fromarrays(list(fields.values()), dtype=[(name, float) for name in fields])


def vary_exposure_of(anatomy: Anatomy, rng: np.random.Generator) -> Anatomy:
    """The same chests at another visit: other position and depth of inspiration, same build.

    Args:
        anatomy: Chests; not changed.
        rng: Source of randomness.
    """
    visit: Anatomy = anatomy.copy()
    n = len(anatomy)
    breath = 0.03 * rng.standard_normal(n)
    visit.centre += 0.02 * rng.standard_normal(n)
    visit.tilt += 0.012 * rng.standard_normal(n)
    visit.rotation += 0.02 * rng.standard_normal(n)
    visit.right_base += breath
    visit.left_base += breath
    visit.gas = rng.random(n)
    return visit
