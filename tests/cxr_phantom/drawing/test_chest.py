from dataclasses import fields, replace

import numpy as np
import pytest

from cxr_phantom.drawing.anatomy import sample_anatomy, vary_exposure_of
from cxr_phantom.drawing.chest import draw_chest, lung_border, posterior_ribs


@pytest.fixture
def people():
    return sample_anatomy(20, np.random.default_rng(0))


def draw(anatomy):
    return draw_chest(anatomy, 64, np.random.default_rng(1))


def test_people_differ_and_another_visit_moves_a_patient_and_keeps_the_build(people):
    assert all(getattr(people, field.name).shape == (20,) for field in fields(people))
    visit = vary_exposure_of(people, np.random.default_rng(1))
    assert (visit.centre != people.centre).all()
    for name in ("lung_width", "heart_width", "mediastinum_width", "rib_spacing", "wall"):
        assert len(set(getattr(people, name))) > 15
        np.testing.assert_array_equal(getattr(visit, name), getattr(people, name))
    before = people.wall.copy()
    changed = people.change(np.array([1]), wall=np.array([9.0]))
    np.testing.assert_array_equal(people.wall, before)
    assert np.flatnonzero(changed.wall != before).tolist() == [1]


def test_lung_is_narrow_at_the_apex_and_absent_above_it(people):
    above, apex, middle = (
        lung_border(people, people.apex + down)[:20] for down in (-0.01, 0.01, 0.6)
    )
    assert (above == 0).all()
    assert (apex < 0.5 * middle).all()


def test_lungs_are_darker_than_heart_and_heart_darker_than_abdomen(people):
    chest = draw(people)
    heart = (chest.thorax > 0.9) & (chest.lung < 0.1)
    lung, abdomen = chest.lung > 0.95, (chest.y > 0.85) & (chest.a < 0.2)
    lung, heart, abdomen = (
        (chest.density * part).sum((1, 2)) / part.sum((1, 2)) for part in (lung, heart, abdomen)
    )
    assert ((lung < 0.7 * heart) & (heart < abdomen)).all()


def test_most_of_the_heart_lies_on_the_left_and_the_right_diaphragm_stands_higher(people):
    chest = draw(people)
    heart = (chest.thorax > 0.9) & (chest.lung < 0.1) & (chest.y > 0)
    assert (heart & chest.left).sum() > 1.5 * (heart & ~chest.left).sum()
    right, left = (
        np.where(side, chest.diaphragm, 9).min((1, 2)) for side in (~chest.left, chest.left)
    )
    assert (right < left).mean() > 0.9


def test_breasts_make_the_lower_zones_denser(people):
    women, men = (draw(replace(people, female=np.full(20, sex))).density for sex in (1.0, 0.0))
    assert (women - men)[:, 40:50, 10:20].mean() > 0.1
    np.testing.assert_allclose(women[:, :16], men[:, :16], atol=1e-5)


def test_a_broken_rib_is_whole_up_to_the_break(people):
    everyone = np.arange(20)
    broken = people.change(everyone, break_at=0.4, break_height=0.0, break_step=0.5)
    chest = draw(people)
    whole, stepped = (posterior_ribs(a, chest.x, chest.y) for a in (people, broken))
    medial = chest.x < 0.38
    np.testing.assert_array_equal(whole[medial], stepped[medial])
    lateral = (chest.x > 0.42) & (np.abs(chest.y) < 0.1)
    assert np.abs(whole - stepped)[lateral].mean() > 0.2
