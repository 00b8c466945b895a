import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surgical_aggregation.averaging import mean, mean_by_name


class TestMean:
    def test_weighs(self):
        np.testing.assert_array_equal(mean([np.float32([0]), np.float32([4])], [1, 3]), [3])

    def test_keeps_the_dtype(self):
        assert mean([np.float16([1]), np.float16([2])], [1, 1]).dtype == np.float16

    @given(st.floats(1e-6, 1e6), st.floats(width=32, allow_nan=False, allow_infinity=False))
    def test_lone_array_passes_bit_for_bit(self, weight, value):
        array = np.float32([value])
        assert mean([array], [weight]).tobytes() == array.tobytes()

    def test_result_is_new(self):
        array = np.float32([1])
        mean([array], [1])[0] = 9
        assert array[0] == 1


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
