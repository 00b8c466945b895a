"""Exactness of the mean, against FLARE's stock aggregator and a naive loop."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cosine

from surgical_aggregation.aggregation.averaging import column_similarity, mean, mean_by_name


class TestMean:
    def test_weighs_into_a_new_array_of_the_first_ones_dtype(self):
        assert mean([np.float16([0]), np.float16([4])], [1, 3]).dtype == np.float16
        array = np.float32([0])
        np.testing.assert_array_equal(mean([array, np.float32([4])], [1, 3]), [3])
        mean([array], [1])[0] = 9
        assert array[0] == 0

    @given(st.floats(1e-6, 1e6), st.floats(width=32, allow_nan=False, allow_infinity=False))
    def test_lone_array_passes_bit_for_bit(self, weight, value):
        array = np.float32([value])
        assert mean([array], [weight]).tobytes() == array.tobytes()

    @pytest.mark.parametrize("dtype", [np.float16, np.float32])
    def test_is_summed_in_float64(self, dtype):
        # 1 and two halves of its last bit: each alone would be rounded away.
        half = np.finfo(dtype).eps / 2
        arrays = [np.full(3, value, dtype) for value in (1, half, half)]
        assert mean(arrays, [1, 1, 1]).tolist() == [dtype((1 + 2 * half) / 3)] * 3
        shares = [0.1, 0.2, 0.7]
        exact = sum(share * float(array[0]) for share, array in zip(shares, arrays, strict=True))
        assert mean(arrays, shares).tolist() == [dtype(exact / sum(shares))] * 3

    def test_what_rounding_lifts_beyond_the_largest_number_is_infinite_without_a_warning(self):
        largest = [np.full(1, np.finfo(np.float64).max)] * 3
        assert mean(largest, [1, 2, 2]).tolist() == [np.inf]


@st.composite
def contributions(draw):
    """K in 1..10 sites with random variables in random order, and weights of each."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    union = [f"head/class/{i} é/kernel" for i in range(draw(st.integers(1, 14)))]
    sent, weights = [], []
    for _ in range(draw(st.integers(1, 10))):
        labelled = rng.permutation(union)[: rng.integers(1, len(union) + 1)].tolist()
        sent.append({name: rng.normal(size=3).astype(np.float32) for name in labelled})
        weights.append({name: float(rng.integers(1, 1000)) for name in labelled})
    return sent, weights


class TestMeanByName:
    def test_each_variable_has_its_own_denominator_and_weights(self):
        sent = [
            {"b": np.float32([0]), "a": np.float32([0]), "c": np.float32([5])},
            {"a": np.float32([4]), "b": np.float32([4])},
        ]
        merged = mean_by_name(sent, [{"a": 1, "b": 3, "c": 2}, {"a": 3, "b": 1}])
        values = [(name, value.item()) for name, value in merged.items()]
        assert values == [("a", 3), ("b", 1), ("c", 5)]

    def test_missing_weight_is_an_error_not_a_zero(self):
        with pytest.raises(KeyError):
            mean_by_name([{"a": np.ones(1)}], [{}])

    @given(contributions())
    def test_equals_a_naive_loop_and_passes_a_lone_sites_variable_bit_for_bit(self, drawn):
        sent, weights = drawn
        merged = mean_by_name(sent, weights)
        assert merged.keys() == {name for one in sent for name in one}
        for name, value in merged.items():
            labelled = [
                (one[name], w[name]) for one, w in zip(sent, weights, strict=True) if name in one
            ]
            total = sum(weight for _, weight in labelled)
            naive = [sum(float(x[i]) * w for x, w in labelled) / total for i in range(3)]
            np.testing.assert_allclose(value, naive, rtol=1e-6, atol=1e-7)
            if len(labelled) == 1:
                assert value.tobytes() == labelled[0][0].tobytes()


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
