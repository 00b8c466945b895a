"""Means of the models of late rounds, of two variables."""

import math

import numpy as np
import pytest

from surgical_aggregation.aggregation.average_of_rounds import average, averaged, check

NAMES = ("conv/kernel", "bn/gamma", "head/Mass/kernel")


def model(*values, dtype=np.float32):
    pairs = zip(NAMES[1:3], values, strict=True)
    return {name: np.array([value], dtype) for name, value in pairs}


def test_it_is_the_mean_of_the_rounds_with_weights_that_fall_by_the_decay():
    values, decay, moments = (4.0, 2.0, 7.0, -1.0), 0.75, {}
    for value in values:
        moments = average(moments, model(value, value), NAMES[1:3], decay)
    weights = [decay**3, *((1 - decay) * decay**age for age in (2, 1, 0))]
    assert sum(weights) == 1
    for found in averaged(model(0, 0), moments).values():
        np.testing.assert_allclose(found, np.dot(weights, values), rtol=1e-6)


def test_it_is_computed_in_float64():
    before, after = np.random.default_rng(0).normal(size=(2, 1000)).astype(np.float32)
    (found,) = average({"average/w": before}, {"w": after}, ["w"], 0.9).values()
    exact = 0.9 * before.astype(np.float64) + (1 - 0.9) * after.astype(np.float64)
    np.testing.assert_array_equal(found, exact.astype(np.float32))


def test_a_column_that_nobody_sent_keeps_its_mean_while_others_go_on():
    moments = average({}, model(4, 4), NAMES[1:3], 0.5)
    moments = average(moments, model(8, 5), NAMES[1:2], 0.5)  # the holder was away
    found = averaged(model(8, 5) | {"late": np.ones(1)}, moments)
    assert [value.tolist() for value in found.values()] == [[6], [4], [1]]


def test_float16_is_averaged_in_float32_and_handed_out_as_it_came():
    half = model(1, 1, dtype=np.float16)
    moments = average({}, half, NAMES[1:2], 0.9)
    assert {value.dtype for value in moments.values()} == {np.dtype(np.float32)}
    assert averaged(half, moments)[NAMES[1]].dtype == np.float16


def test_without_a_decay_or_an_average_there_is_none_and_other_moments_are_not_its():
    velocity, plain = {f"velocity/{NAMES[1]}": np.float32([9])}, model(1, 1)
    assert average(velocity, plain, NAMES[1:3], 0.0) == {}
    assert averaged(plain, velocity) is None
    assert set(average(velocity, plain, NAMES[1:2], 0.5)) == {f"average/{NAMES[1]}"}


@pytest.mark.parametrize("decay", [-0.1, 1.0, math.nan])
def test_a_decay_out_of_range_is_refused(decay):
    with pytest.raises(ValueError, match="average_decay must be at least 0 and below 1; got"):
        check(decay)
