"""A drawn chest to try an exported model with."""

from __future__ import annotations

import numpy as np

from cxr_phantom.drawing.anatomy import sample_anatomy
from cxr_phantom.drawing.rendering import render
from cxr_study.data.labels.vocabulary import UNION_CLASSES

TOLERANCE = 1e-4
"""Of probabilities on other machines, whose processors add in another order."""

_SIDE = 512  # pixels


def chest() -> np.ndarray:
    """A drawn chest, uint8 (512, 512), the same on every call."""
    rng = np.random.default_rng(0)
    shape = (1, len(UNION_CLASSES))
    (picture,) = render(
        np.zeros(shape),
        "nih",
        rng,
        _SIDE,
        anatomy=sample_anatomy(1, rng),
        devices=np.zeros(1, int),
        lateral=np.zeros(1, bool),
        visibility=np.ones(shape),
    )
    return picture
