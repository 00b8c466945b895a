"""A picture to try an exported model with."""

from __future__ import annotations

import numpy as np

from cxr_study.common.offered_data import demo_data

TOLERANCE = 1e-4
"""Of probabilities on other machines, whose processors add in another order."""


def chest() -> np.ndarray:
    """The phantom's chest, uint8 (512, 512), the same on every call."""
    return demo_data().picture()
