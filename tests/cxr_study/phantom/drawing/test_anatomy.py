from dataclasses import fields

import numpy as np
import pytest

from cxr_study.phantom.drawing.anatomy import sample_anatomy, vary_exposure_of

BUILD = ("lung_width", "heart_width", "mediastinum_width", "rib_spacing", "rib_start", "wall")


@pytest.fixture
def people():
    return sample_anatomy(20, np.random.default_rng(0))


def test_everyone_has_every_dimension_and_differs(people):
    for field in fields(people):
        assert getattr(people, field.name).shape == (20,)
    for name in BUILD:
        assert len(set(getattr(people, name))) > 15


def test_take_may_repeat_a_chest_and_change_leaves_the_original_alone(people):
    np.testing.assert_array_equal(people.take(np.array([3, 3])).wall, people.wall[[3, 3]])
    before = people.wall.copy()
    changed = people.change(np.array([1]), wall=np.array([9.0]))
    np.testing.assert_array_equal(people.wall, before)
    assert changed.wall[1] == 9
    np.testing.assert_array_equal(np.delete(changed.wall, 1), np.delete(before, 1))


def test_another_visit_moves_a_patient_and_keeps_the_build(people):
    visit = vary_exposure_of(people, np.random.default_rng(1))
    assert (visit.centre != people.centre).all()
    for name in BUILD:
        np.testing.assert_array_equal(getattr(visit, name), getattr(people, name))
