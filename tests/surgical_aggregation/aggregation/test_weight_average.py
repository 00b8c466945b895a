import numpy as np
import pytest

from surgical_aggregation.aggregation.weight_average import averaged, check, updated

NAMES = ("conv/kernel", "head/Mass/kernel")
VELOCITY = {"velocity/conv/kernel": np.float32([9])}


def model(*values, dtype=np.float32):
    return dict(zip(NAMES, (np.array([value], dtype) for value in values), strict=True))


def lists(variables):
    return {name: value.tolist() for name, value in variables.items()}


def test_it_is_the_mean_of_the_rounds_with_weights_that_fall_by_the_decay():
    values, decay, moments = (4.0, 2.0, 7.0, -1.0), 0.75, {}
    for value in values:
        moments = updated(moments, model(value, value), NAMES, decay)
    weights = [decay**3, *((1 - decay) * decay**age for age in (2, 1, 0))]
    assert sum(weights) == 1
    for found in averaged(model(0, 0), moments).values():
        np.testing.assert_allclose(found, np.dot(weights, values), rtol=1e-6)


def test_it_is_computed_in_float64():
    before, after = np.random.default_rng(0).normal(size=(2, 1000)).astype(np.float32)
    (found,) = updated({"average/w": before}, {"w": after}, ["w"], 0.9).values()
    exact = 0.9 * before.astype(np.float64) + (1 - 0.9) * after.astype(np.float64)
    np.testing.assert_array_equal(found, exact.astype(np.float32))


def test_a_column_that_nobody_sent_keeps_its_mean_while_others_go_on():
    moments = updated({}, model(4, 4), NAMES, 0.5)
    moments = updated(moments, model(8, 5), ["conv/kernel"], 0.5)  # the holder was away
    assert lists(averaged(model(8, 5), moments)) == {NAMES[0]: [6], NAMES[1]: [4]}
    assert lists(averaged(model(8, 5) | {"late": np.ones(1)}, moments))["late"] == [1]


def test_float16_is_averaged_in_float32_and_handed_out_as_it_came():
    half = model(1, 1, dtype=np.float16)
    moments = updated({}, half, NAMES[:1], 0.9)
    assert moments["average/conv/kernel"].dtype == np.float32
    assert averaged(half, moments)["conv/kernel"].dtype == np.float16


def test_without_a_decay_or_an_average_there_is_none_and_other_moments_are_not_its():
    assert updated(VELOCITY, model(1, 1), NAMES, 0.0) == {}
    assert averaged(model(1, 1), VELOCITY) is None
    assert set(updated(VELOCITY, model(1, 1), NAMES[:1], 0.5)) == {"average/conv/kernel"}


@pytest.mark.parametrize("decay", [-0.1, 1.0, float("nan")])
def test_a_decay_out_of_range_is_refused(decay):
    with pytest.raises(ValueError, match="at least 0 and below 1; got"):
        check(decay)
