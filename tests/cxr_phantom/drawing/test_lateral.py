from dataclasses import replace

import numpy as np
import pytest

from cxr_phantom.drawing.anatomy import Shown, sample_anatomy
from cxr_phantom.drawing.lateral import draw_lateral, paint_lateral
from cxr_study.data.labels.vocabulary import UNION_CLASSES

N = 20


def draw(*names, visibility=1.0, **changes):
    """The same 20 chests from the side, all with the named findings."""
    anatomy = sample_anatomy(N, np.random.default_rng(0))
    anatomy = replace(anatomy, **{name: np.full(N, value) for name, value in changes.items()})
    chest = draw_lateral(anatomy, 64, np.random.default_rng(1))
    streams = np.random.default_rng(2).spawn(len(UNION_CLASSES))
    shown = {}
    for name, rng in zip(UNION_CLASSES, streams, strict=True):
        n = N if name in names else 0
        shown[name] = Shown(np.arange(n), np.full(n, visibility), rng)
    paint_lateral(chest, shown)
    return chest


def dense(chest):
    return (chest.density * (chest.y < 0.4) * (chest.y > 0) > 1.2)[:, :, :32].sum()


def test_the_heart_is_in_front_and_the_spine_behind_and_a_wide_heart_is_wide():
    chest = draw()
    heart = np.s_[:, 36:40, 18:26]
    behind, spine = np.s_[:, 30:36, 34:38], np.s_[:, 30:36, 43:47]
    assert chest.density[heart].mean() > 2 * chest.density[behind].mean()
    assert chest.density[spine].mean() > 1.2 * chest.density[behind].mean()
    assert dense(draw(heart_width=0.45)) > 1.2 * dense(draw(heart_width=0.3))
    unseen = draw("Fracture", "Pneumothorax")  # from the side
    np.testing.assert_array_equal(unseen.density, chest.density)


@pytest.mark.parametrize(
    "name", ["Consolidation", "Edema", "Lung Opacity", "Mass", "Pleural Effusion", "Pneumonia"]
)
def test_opaque_findings_make_lungs_denser_and_more_so_when_plain(name):
    healthy, faint, plain = draw(), draw(name, visibility=0.2), draw(name)
    added = [(ill.density - healthy.density).sum() for ill in (faint, plain)]
    assert 0 < 1.2 * added[0] < added[1]
    assert ((plain.density - healthy.density) >= -1e-6).all()
