from dataclasses import replace

import numpy as np

from cxr_phantom.drawing.anatomy import sample_anatomy
from cxr_phantom.drawing.lateral import draw_lateral


def test_the_heart_is_in_front_and_the_spine_behind_and_a_wide_heart_is_wide():
    anatomy = sample_anatomy(20, np.random.default_rng(0))
    narrow, wide = (
        draw_lateral(replace(anatomy, heart_width=np.full(20, width)), 64, np.random.default_rng(1))
        for width in (0.3, 0.45)
    )
    behind = narrow[:, 30:36, 34:38].mean()
    assert narrow[:, 36:40, 18:26].mean() > 2 * behind
    assert narrow[:, 30:36, 43:47].mean() > 1.2 * behind
    assert wide[:, 32:44, 28:34].mean() > 1.1 * narrow[:, 32:44, 28:34].mean()
