"""Findings that change the shape of a chest: a wide heart, a flat diaphragm, a lost volume."""

from collections.abc import Mapping

import numpy as np

from cxr_study.phantom.drawing.anatomy import Anatomy


def deform(
    anatomy: Anatomy,
    present: Mapping[str, np.ndarray],
    visibility: Mapping[str, np.ndarray],
    rngs: Mapping[str, np.random.Generator],
) -> Anatomy:
    """Change the shape of the chests that have a finding which does so.

    Args:
        anatomy: Chests without findings.
        present: For each finding the indices of the chests that have it.
        visibility: For each finding how plainly it shows in these, from 0 to 1.
        rngs: One source of randomness per finding.

    Returns:
        The changed anatomy.
    """

    def between(name: str, low: float, high: float) -> np.ndarray:
        return low + (high - low) * visibility[name]

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
        break_at=side * rngs["Fracture"].uniform(0.3, 0.52, len(rows)),
        break_height=rngs["Fracture"].uniform(-0.4, 0.25, len(rows)),
        break_step=between("Fracture", 0.3, 0.5),
    )
