import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surgical_aggregation.aggregation.averaging import mean, mean_by_name, mean_of_rows


class TestMean:
    def test_weighs(self):
        np.testing.assert_array_equal(mean([np.float32([0]), np.float32([4])], [1, 3]), [3])

    def test_keeps_the_dtype(self):
        assert mean([np.float16([1]), np.float16([2])], [1, 1]).dtype == np.float16

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

    def test_result_is_new(self):
        array = np.float32([1])
        mean([array], [1])[0] = 9
        assert array[0] == 1


class TestMeanOfRows:
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    @given(st.integers(0, 2**32 - 1), st.integers(1, 20), st.integers(1, 9))
    def test_is_the_mean_of_every_row_bit_for_bit(self, dtype, seed, sites, rows):
        rng = np.random.default_rng(seed)
        arrays = [rng.normal(size=(rows, 3)).astype(dtype) for _ in range(sites)]
        weights = rng.random((rows, sites)) + 1e-3
        means = mean_of_rows(arrays, np.asfortranarray(weights))
        for row in range(rows):
            alone = mean([array[row] for array in arrays], weights[row].tolist())
            assert means[row].tobytes() == alone.tobytes() and means.dtype == alone.dtype


class TestMeanByName:
    def test_denominator_belongs_to_the_variable(self):
        contributions = [{"a": np.float32([2]), "b": np.float32([5])}, {"a": np.float32([4])}]
        merged = mean_by_name(contributions, [{"a": 1, "b": 1}, {"a": 1}])
        assert {name: value.item() for name, value in merged.items()} == {"a": 3, "b": 5}

    def test_weights_may_differ_between_variables(self):
        contributions = [{"a": np.float32([0]), "b": np.float32([0])}] * 1 + [
            {"a": np.float32([4]), "b": np.float32([4])}
        ]
        merged = mean_by_name(contributions, [{"a": 1, "b": 3}, {"a": 3, "b": 1}])
        assert {name: value.item() for name, value in merged.items()} == {"a": 3, "b": 1}

    def test_names_are_sorted(self):
        assert list(mean_by_name([{"b": np.ones(1), "a": np.ones(1)}], [{"a": 1, "b": 1}])) == [
            "a",
            "b",
        ]

    def test_missing_weight_is_an_error_not_a_zero(self):
        with pytest.raises(KeyError):
            mean_by_name([{"a": np.ones(1)}], [{}])
