import numpy as np
import pytest

from cxr_phantom.drawing.anatomy import sample_anatomy, vary_exposure_of
from cxr_phantom.drawing.chest import draw_chest, draw_lateral, lung_border, posterior_ribs


@pytest.fixture
def people():
    return sample_anatomy(20, np.random.default_rng(0))


def draw(anatomy, how=draw_chest, **changes):
    changed = anatomy.copy()
    for name, value in changes.items():
        changed[name] = value
    return how(changed, 64, np.random.default_rng(1))


def test_people_differ_and_another_visit_moves_a_patient_and_keeps_the_build(people):
    before = people.copy()
    visit = vary_exposure_of(people, np.random.default_rng(1))
    assert (visit.centre != people.centre).all()
    for name in ("lung_width", "heart_width", "mediastinum_width", "rib_spacing", "wall"):
        assert len(set(people[name])) > 15
        np.testing.assert_array_equal(visit[name], people[name])
    np.testing.assert_array_equal(people, before)


def test_lung_is_narrow_at_the_apex_and_absent_above_it(people):
    borders = [lung_border(people, people.apex + down)[:20] for down in (-0.01, 0.01, 0.6)]
    above, apex, middle = borders
    assert (above == 0).all() and (apex < 0.5 * middle).all()


def test_lungs_are_darker_than_heart_and_heart_darker_than_abdomen(people):
    chest = draw(people)
    heart = (chest.thorax > 0.9) & (chest.lung < 0.1)
    parts = (chest.lung > 0.95, heart, (chest.y > 0.85) & (chest.a < 0.2))
    means = ((chest.density * part).sum((1, 2)) / part.sum((1, 2)) for part in parts)
    lung, heart, abdomen = means
    assert ((lung < 0.7 * heart) & (heart < abdomen)).all()


def test_most_of_the_heart_lies_on_the_left_and_the_right_diaphragm_stands_higher(people):
    chest = draw(people)
    heart = (chest.thorax > 0.9) & (chest.lung < 0.1) & (chest.y > 0)
    assert (heart & chest.left).sum() > 1.5 * (heart & ~chest.left).sum()
    sides = (~chest.left, chest.left)
    right, left = (np.where(side, chest.diaphragm, 9).min((1, 2)) for side in sides)
    assert (right < left).mean() > 0.9


def test_breasts_make_the_lower_zones_denser(people):
    women, men = (draw(people, female=sex).density for sex in (1.0, 0.0))
    assert (women - men)[:, 40:50, 10:20].mean() > 0.1
    np.testing.assert_allclose(women[:, :16], men[:, :16], atol=1e-5)


def test_a_broken_rib_is_whole_up_to_the_break(people):
    chest, broken = draw(people), draw(people, break_at=0.4, break_step=0.5)
    whole, stepped = (posterior_ribs(drawn.anatomy, chest.x, chest.y) for drawn in (chest, broken))
    medial = chest.x < 0.38
    np.testing.assert_array_equal(whole[medial], stepped[medial])
    lateral = (chest.x > 0.42) & (np.abs(chest.y) < 0.1)
    assert np.abs(whole - stepped)[lateral].mean() > 0.2


def test_from_the_side_the_heart_is_in_front_the_spine_behind_and_a_wide_heart_is_wide(people):
    narrow, wide = (draw(people, draw_lateral, heart_width=width) for width in (0.3, 0.45))
    behind = narrow[:, 30:36, 34:38].mean()
    assert narrow[:, 36:40, 18:26].mean() > 2 * behind
    assert narrow[:, 30:36, 43:47].mean() > 1.2 * behind
    assert wide[:, 32:44, 28:34].mean() > 1.1 * narrow[:, 32:44, 28:34].mean()
