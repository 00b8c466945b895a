"""The findings that are painted on a chest, one painter each.

`deformation` has changed the shape of the chest before, where a finding does that. Side, place and
size are random; weak examples are hard to see, as they are in the clinic.
"""

from collections.abc import Callable, Mapping

import numpy as np

from cxr_study.phantom.drawing import lung_findings, other_findings
from cxr_study.phantom.drawing.canvas import per_picture
from cxr_study.phantom.drawing.chest import Chest
from cxr_study.phantom.drawing.support_devices import support_devices

Painter = Callable[[Chest, np.random.Generator], np.ndarray]

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
    "Support Devices": support_devices,
}


def paint(
    chest: Chest,
    present: Mapping[str, np.ndarray],
    visibility: Mapping[str, np.ndarray],
    rngs: Mapping[str, np.random.Generator],
) -> None:
    """Add every finding to `chest.density`, in place.

    Args:
        chest: Drawn chests, already deformed.
        present: For each finding the indices of the chests that have it.
        visibility: For each finding how plainly it shows in these, from 0 to 1.
        rngs: One source of randomness per finding.
    """
    for name, painter in PAINTERS.items():
        rows = present[name]
        if len(rows):
            strength = _FAINTEST + (_PLAINEST - _FAINTEST) * per_picture(visibility[name])
            if name in _REPLACING:
                strength = np.minimum(strength, 1)
            chest.density[rows] += strength * painter(chest.take(rows), rngs[name])
