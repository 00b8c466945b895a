"""Means of arrays, by name over sites, against a naive loop; how alike sites' columns are."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cosine

from surgical_aggregation.aggregation.averaging import column_similarity, mean, mean_by_name


def test_a_mean_is_a_new_array():
    array = np.float32([0])
    mean([array], [1])[0] = 9
    assert array[0] == 0


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_a_mean_is_computed_in_float64_and_keeps_the_dtype(dtype):
    rng = np.random.default_rng(0)
    arrays, weights = rng.normal(size=(3, 1000)).astype(dtype), rng.random(3)
    exact = np.average(arrays.astype(np.float64), axis=0, weights=weights)
    np.testing.assert_array_equal(mean(arrays, weights), exact.astype(dtype), strict=True)


def test_what_rounding_lifts_beyond_the_largest_number_is_infinite_without_a_warning():
    largest = [np.full(1, np.finfo(np.float64).max)] * 3
    assert mean(largest, [1, 2, 2]).tolist() == [np.inf]


@given(st.integers(0, 2**32 - 1), st.integers(1, 10), st.integers(1, 14))
def test_by_name_it_equals_a_naive_loop_and_passes_a_lone_sites_variable_bit_for_bit(seed, k, n):
    """Sites send random variables in random order, with random weights."""
    rng = np.random.default_rng(seed)
    union = [f"head/class/{i} é/kernel" for i in range(n)]
    sent, weights = [], []
    for _ in range(k):
        labelled = rng.permutation(union)[: rng.integers(1, n + 1)].tolist()
        sent.append({name: rng.normal(size=3).astype(np.float32) for name in labelled})
        weights.append({name: float(rng.integers(1, 1000)) for name in labelled})
    merged = mean_by_name(sent, weights)
    assert list(merged) == sorted({name for one in sent for name in one})
    for name, value in merged.items():
        pairs = [(one[name], w[name]) for one, w in zip(sent, weights, strict=True) if name in one]
        total = sum(weight for _, weight in pairs)
        naive = [sum(float(x[i]) * w for x, w in pairs) / total for i in range(3)]
        np.testing.assert_allclose(value, naive, rtol=1e-6, atol=1e-7)
        if len(pairs) == 1:
            assert value.tobytes() == pairs[0][0].tobytes()


def test_a_missing_weight_is_an_error_not_a_zero():
    with pytest.raises(KeyError):
        mean_by_name([{"a": np.ones(1)}], [{}])


def columns(**kernels):
    return {name: (np.float32(kernel), np.zeros(1, np.float32)) for name, kernel in kernels.items()}


def test_similarity_is_the_mean_cosine_over_all_pairs_of_sites_that_label_a_class():
    kernels = np.random.default_rng(0).normal(size=(4, 5)).astype(np.float32)
    pairs = [1 - cosine(a, b) for a, b in combinations(kernels.astype(float), 2)]
    found = column_similarity([columns(Edema=k) for k in kernels])
    assert found == {"Edema": pytest.approx(np.mean(pairs), abs=1e-12)}
    sites = [columns(Mass=[1, 0], Edema=[1, 0], Hernia=[1, 0]), columns(Edema=[1, 0], Mass=[1, 1])]
    assert list(column_similarity(sites)) == ["Edema", "Mass"]
    assert column_similarity(sites[:1]) == column_similarity([]) == {}
    assert column_similarity([columns(Edema=[0, 0]), columns(Edema=[1, 0])]) == {}  # no direction
