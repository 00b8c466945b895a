from itertools import combinations

import numpy as np
import pytest
from scipy.spatial.distance import cosine

from surgical_aggregation.aggregation.column_similarity import column_similarity


def columns(**kernels):
    return {name: (np.float32(kernel), np.zeros(1, np.float32)) for name, kernel in kernels.items()}


def test_it_is_the_mean_cosine_over_all_pairs_of_sites():
    rng = np.random.default_rng(0)
    kernels = rng.normal(size=(4, 5)).astype(np.float32)
    pairs = [1 - cosine(a, b) for a, b in combinations(kernels.astype(float), 2)]
    assert column_similarity([columns(Edema=k) for k in kernels]) == {
        "Edema": pytest.approx(np.mean(pairs), abs=1e-12)
    }


def test_only_classes_that_several_sites_label_have_one_sorted():
    sites = [columns(Mass=[1, 0], Edema=[1, 0], Hernia=[1, 0]), columns(Edema=[1, 0], Mass=[1, 1])]
    assert list(column_similarity(sites)) == ["Edema", "Mass"]
    assert column_similarity(sites[:1]) == column_similarity([]) == {}
    assert column_similarity([columns(Edema=[0, 0]), columns(Edema=[1, 0])]) == {}  # no direction
