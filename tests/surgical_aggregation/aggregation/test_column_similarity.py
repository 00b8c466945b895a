from itertools import combinations

import numpy as np
import pytest
from scipy.spatial.distance import cosine

from surgical_aggregation.aggregation.column_similarity import column_similarity


def columns(**kernels):
    return {name: (np.float32(kernel), np.zeros(1, np.float32)) for name, kernel in kernels.items()}


def test_it_is_the_mean_cosine_over_all_pairs_of_holders():
    rng = np.random.default_rng(0)
    kernels = rng.normal(size=(4, 5)).astype(np.float32)
    pairs = [1 - cosine(a, b) for a, b in combinations(kernels.astype(float), 2)]
    assert column_similarity([columns(Edema=k) for k in kernels]) == {
        "Edema": pytest.approx(np.mean(pairs), abs=1e-12)
    }


def test_the_length_and_the_bias_of_a_column_do_not_matter():
    one = {"Edema": (np.float32([1, 2]), np.float32([0]))}
    other = {"Edema": (np.float32([3, 6]), np.float32([9]))}
    assert column_similarity([one, other])["Edema"] == pytest.approx(1)
    assert column_similarity([one, columns(Edema=[-1, -2])])["Edema"] == pytest.approx(-1)


def test_only_classes_that_several_sites_hold_have_one_sorted():
    held = [columns(Mass=[1, 0], Edema=[1, 0], Hernia=[1, 0]), columns(Edema=[1, 0], Mass=[1, 1])]
    assert list(column_similarity(held)) == ["Edema", "Mass"]
    assert column_similarity(held[:1]) == column_similarity([]) == {}


def test_a_column_of_zeros_points_nowhere():
    assert column_similarity([columns(Edema=[0, 0]), columns(Edema=[1, 0])]) == {}
