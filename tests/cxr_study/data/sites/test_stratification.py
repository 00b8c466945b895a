import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cxr_study.data.sites.stratification import stratify


def random_classes(patients, shares, seed):
    return np.random.default_rng(seed).random((patients, len(shares))) < shares


@given(st.integers(0, 50), st.lists(st.sampled_from([0.02, 0.1, 0.5]), min_size=1, max_size=6))
def test_parts_have_their_sizes_and_every_patient_is_in_one(seed, shares):
    present = random_classes(100, shares, seed)
    part = stratify(present, [70, 0, 10, 20], np.random.default_rng(seed))
    assert np.bincount(part, minlength=4).tolist() == [70, 0, 10, 20]


@given(st.integers(0, 200))
def test_a_class_with_as_many_patients_as_parts_has_one_in_each(seed):
    present = random_classes(264, [0.01, 0.012, 0.03, 0.1, 0.3], seed)
    part = stratify(present, [185, 26, 53], np.random.default_rng(seed))
    for name in np.flatnonzero(present.sum(axis=0) >= 3):
        assert set(part[present[:, name]]) == {0, 1, 2}


def test_patients_that_share_two_rare_classes_do_not_take_one_from_a_part():
    present = np.zeros((30, 2), bool)
    present[[0, 1, 2], 0] = present[[0, 1, 3], 1] = True  # two have both
    for seed in range(20):
        part = stratify(present, [24, 3, 3], np.random.default_rng(seed))
        for name in (0, 1):
            assert set(part[present[:, name]]) == {0, 1, 2}


@pytest.mark.parametrize("share", [0.02, 0.2, 0.6])
def test_parts_have_equally_much_of_every_class(share):
    present = random_classes(3000, [share, share, 0.3], 0)
    part = stratify(present, [2100, 300, 600], np.random.default_rng(0))
    for number, fraction in enumerate((0.7, 0.1, 0.2)):
        wanted = present.sum(axis=0) * fraction
        assert np.all(abs(present[part == number].sum(axis=0) - wanted) <= 0.02 * wanted + 1)


def test_lone_patients_of_a_class_are_at_either_part():
    present = np.zeros((40, 1), bool)
    present[0] = True
    parts = {stratify(present, [20, 20], np.random.default_rng(seed))[0] for seed in range(20)}
    assert parts == {0, 1}


def test_the_seed_decides_who_goes_where():
    present = random_classes(200, [0.1, 0.4], 0)
    one, same, other = (
        stratify(present, [140, 60], np.random.default_rng(seed)) for seed in (0, 0, 1)
    )
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)
