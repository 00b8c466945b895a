"""What findings do to a chest: some change its shape, most are painted on it, each by a painter.

Side, place and size are random; weak examples are hard to see, as in the clinic.
"""

from collections.abc import Callable, Mapping

import numpy as np

from cxr_phantom.drawing import lung_findings, other_findings
from cxr_phantom.drawing.anatomy import Anatomy, Shown
from cxr_phantom.drawing.canvas import per_picture
from cxr_phantom.drawing.chest import Chest

Painter = Callable[[Chest], np.ndarray]

_FAINTEST, _PLAINEST = 0.7, 1.4  # density of a finding, as a multiple of what its painter gives
_REPLACING = ("Hernia", "Pleural Effusion")  # hide what lies beneath, which they can do only once

PAINTERS: Mapping[str, Painter] = {
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
    "Pleural Thickening": other_findings.pleural_thickening,
    "Pneumothorax": other_findings.pneumothorax,
    "Pleural Effusion": other_findings.pleural_effusion,
    "Pleural Other": other_findings.pleural_other,
    "Hernia": other_findings.hernia,
    "Fracture": other_findings.fracture,
    "Support Devices": other_findings.support_devices,
}


def deform(anatomy: Anatomy, shown: Mapping[str, Shown]) -> Anatomy:
    """Change the shape of chests: a wide heart, a flat diaphragm, a lost volume."""

    def between(name: str, low: float, high: float) -> np.ndarray:
        return low + (high - low) * shown[name].visibility

    rows = shown["Cardiomegaly"].rows
    growth = between("Cardiomegaly", 1.2, 1.55)
    anatomy = anatomy.change(
        rows,
        heart_width=anatomy.heart_width[rows] * growth,
        heart_height=anatomy.heart_height[rows] * (0.6 + 0.4 * growth),
    )
    rows = shown["Enlarged Cardiomediastinum"].rows
    growth = between("Enlarged Cardiomediastinum", 1.25, 1.8)
    anatomy = anatomy.change(
        rows,
        mediastinum_width=anatomy.mediastinum_width[rows] * growth,
        knob=anatomy.knob[rows] * np.sqrt(growth),
    )
    rows = shown["Emphysema"].rows
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
    rows = shown["Fibrosis"].rows
    loss = between("Fibrosis", 0.02, 0.1)
    anatomy = anatomy.change(
        rows, right_base=anatomy.right_base[rows] - loss, left_base=anatomy.left_base[rows] - loss
    )
    rows = shown["Edema"].rows
    congestion = between("Edema", 1.1, 1.5)
    anatomy = anatomy.change(rows, vessels=anatomy.vessels[rows] * congestion)
    rows = shown["Atelectasis"].rows
    side = shown["Atelectasis"].rng.choice([-1, 1], len(rows))
    anatomy = anatomy.change(rows, collapse=side * between("Atelectasis", 0.04, 0.14))
    rows = shown["Fracture"].rows
    side = shown["Fracture"].rng.choice([-1, 1], len(rows))
    return anatomy.change(
        rows,
        break_at=side * shown["Fracture"].rng.uniform(0.3, 0.52, len(rows)),
        break_height=shown["Fracture"].rng.uniform(-0.4, 0.25, len(rows)),
        break_step=between("Fracture", 0.3, 0.5),
    )


def paint(chest: Chest, shown: Mapping[str, Shown]) -> None:
    """Add every finding to `chest.density`, in place; the chests are already deformed."""
    for name, painter in PAINTERS.items():
        finding = shown[name]
        if len(finding.rows):
            strength = _FAINTEST + (_PLAINEST - _FAINTEST) * per_picture(finding.visibility)
            if name in _REPLACING:
                strength = np.minimum(strength, 1)
            chest.density[finding.rows] += strength * painter(chest.take(finding.rows, finding.rng))
