"""Steps of the server's optimizer against a naive loop, and means of late models."""

import math

import numpy as np
import pytest

from surgical_aggregation.aggregation.moments import average, averaged, check, step, without

NAMES = ("conv/kernel", "bn/gamma", "head/Mass/kernel", "head/Mass/bias")
RATES = {"learning_rate": 1.0, "momentum": 0.5}


def one(value, dtype=np.float32):
    return {"conv/kernel": np.array([value], dtype)}


def naive(optimizer, made, start, learning_rate, momentum):
    """Number by number, with Python floats; only the stored values are float32."""
    model = {name: list(map(float, value)) for name, value in start.items()}
    m = {name: [0.0] * 3 for name in NAMES}
    v = {name: [1e-6] * 3 for name in NAMES}
    for aggregate in made:
        for name in aggregate:
            for i in range(3):
                d = float(aggregate[name][i]) - model[name][i]
                if optimizer == "fedavgm":
                    m[name][i] = momentum * m[name][i] + d
                    move = m[name][i]
                else:
                    m[name][i] = momentum * m[name][i] + (1 - momentum) * d
                    v[name][i] = 0.99 * v[name][i] + 0.01 * d * d
                    move = m[name][i] / (math.sqrt(v[name][i]) + 1e-3)
                model[name][i] += learning_rate * move
    return model


def test_without_one_the_aggregate_is_the_model_to_the_last_object():
    aggregate, moments = one(3), {"mean/conv/kernel": np.ones(1)}
    stepped, moments = step("none", one(1), aggregate, moments, **RATES)
    assert stepped["conv/kernel"] is aggregate["conv/kernel"] and moments == {}


@pytest.mark.parametrize("optimizer", ["fedavgm", "fedadam"])
class TestBoth:
    @pytest.mark.parametrize("seed", range(3))
    def test_equals_a_naive_loop_with_variables_absent_now_and_then(self, optimizer, seed):
        rng = np.random.default_rng(seed)

        def drawn(share):
            chosen = [name for name in NAMES if rng.random() < share]
            return {name: rng.normal(size=3).astype(np.float32) for name in chosen}

        start, made = drawn(1), [drawn(0.7) for _ in range(6)]
        model, moments = dict(start), {}
        for aggregate in made:
            rates = {"learning_rate": 0.3, "momentum": 0.8}
            stepped, moments = step(optimizer, model, aggregate, moments, **rates)
            model |= stepped
        expected = naive(optimizer, made, start, 0.3, 0.8)
        for name in NAMES:
            np.testing.assert_allclose(model[name], expected[name], rtol=2e-5, atol=2e-6)

    def test_a_rate_of_0_is_the_optimizers_own(self, optimizer):
        rates = [0.0, {"fedavgm": 1.0, "fedadam": 0.003}[optimizer]]
        how = {"momentum": 0.9}
        own, given = (step(optimizer, one(1), one(3), {}, learning_rate=h, **how) for h in rates)
        assert own == given and own[0] != one(1)

    def test_new_variables_and_moving_statistics_are_taken_as_they_are(self, optimizer):
        new, last, aggregate = {"head/Mass/bias": np.float32([5])}, one(1), one(0.25)
        assert step(optimizer, {}, new, {}, **RATES) == (new, {})
        stepped = step(optimizer, last, aggregate, {}, statistics=set(last), **RATES)
        assert stepped == (aggregate, {})

    @pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
    def test_a_variable_keeps_its_dtype_and_stays_an_array(self, optimizer, dtype):
        after, moments = step(optimizer, one(1, dtype), one(3, dtype), {}, **RATES)
        assert after["conv/kernel"].dtype == dtype
        assert {m.dtype for m in moments.values()} == {np.promote_types(dtype, np.float32)}
        last, aggregate = ({"scale": np.array(value, dtype)} for value in (1, 2))
        after, moments = step(optimizer, last, aggregate, {}, **RATES)  # without a dimension
        assert {type(v) for v in (*after.values(), *moments.values())} == {np.ndarray}

    def test_what_comes_in_is_left_alone_and_other_moments_are_forgotten(self, optimizer):
        last, aggregate = one(1), one(3)
        _, moments = step(optimizer, last, aggregate, {"other/conv/kernel": np.ones(1)}, **RATES)
        assert "other/conv/kernel" not in moments
        kept = {name: value.copy() for name, value in moments.items()}
        step(optimizer, last, aggregate, moments, **RATES)
        assert (last["conv/kernel"], aggregate["conv/kernel"]) == (1, 3)
        assert all(moments[name] == kept[name] for name in kept)


def test_without_drops_a_variables_moments_of_every_kind():
    moments = {f"{kind}/{name}": np.ones(1) for kind in ("mean", "square") for name in NAMES}
    left = without(moments, {"head/Mass/kernel", "head/Mass/bias"})
    assert left.keys() == {f"{kind}/{name}" for kind in ("mean", "square") for name in NAMES[:2]}


@pytest.mark.parametrize(("settings", "reason"), [
    (("adam", 1.0, 0.9, 0.0), "must be one of .* got 'adam'"),
    (("fedavgm", -0.1, 0.9, 0.0), "learning_rate must be 0 or more; got -0.1"),
    (("fedavgm", math.nan, 0.9, 0.0), "learning_rate must be 0 or more; got nan"),
    (("fedadam", 1.0, 1.0, 0.0), r"momentum must be at least 0 and below 1; got 1.0"),
    (("fedadam", 1.0, -0.1, 0.0), "momentum"),
    *((("none", 1.0, 0.9, decay), "average_decay must be at least 0 and below 1; got")
      for decay in (-0.1, 1.0, math.nan)),
])  # fmt: skip
def test_settings_out_of_range_are_refused(settings, reason):
    with pytest.raises(ValueError, match=reason):
        check(*settings)


class TestAverage:
    """Means of late models, of two variables."""

    def model(self, *values, dtype=np.float32):
        pairs = zip(NAMES[1:3], values, strict=True)
        return {name: np.array([value], dtype) for name, value in pairs}

    def test_it_is_the_mean_of_the_rounds_with_weights_that_fall_by_the_decay(self):
        values, decay, moments = (4.0, 2.0, 7.0, -1.0), 0.75, {}
        for value in values:
            moments = average(moments, self.model(value, value), NAMES[1:3], decay)
        weights = [decay**3, *((1 - decay) * decay**age for age in (2, 1, 0))]
        assert sum(weights) == 1
        for found in averaged(self.model(0, 0), moments).values():
            np.testing.assert_allclose(found, np.dot(weights, values), rtol=1e-6)

    def test_it_is_computed_in_float64(self):
        before, after = np.random.default_rng(0).normal(size=(2, 1000)).astype(np.float32)
        (found,) = average({"average/w": before}, {"w": after}, ["w"], 0.9).values()
        exact = 0.9 * before.astype(np.float64) + (1 - 0.9) * after.astype(np.float64)
        np.testing.assert_array_equal(found, exact.astype(np.float32))

    def test_a_column_that_nobody_sent_keeps_its_mean_while_others_go_on(self):
        moments = average({}, self.model(4, 4), NAMES[1:3], 0.5)
        moments = average(moments, self.model(8, 5), NAMES[1:2], 0.5)  # the holder was away
        found = averaged(self.model(8, 5) | {"late": np.ones(1)}, moments)
        assert [value.tolist() for value in found.values()] == [[6], [4], [1]]

    def test_float16_is_averaged_in_float32_and_handed_out_as_it_came(self):
        half = self.model(1, 1, dtype=np.float16)
        moments = average({}, half, NAMES[1:2], 0.9)
        assert {value.dtype for value in moments.values()} == {np.dtype(np.float32)}
        assert averaged(half, moments)[NAMES[1]].dtype == np.float16

    def test_without_a_decay_or_an_average_there_is_none_and_other_moments_are_not_its(self):
        velocity, model = {f"velocity/{NAMES[1]}": np.float32([9])}, self.model(1, 1)
        assert average(velocity, model, NAMES[1:3], 0.0) == {}
        assert averaged(model, velocity) is None
        assert set(average(velocity, model, NAMES[1:2], 0.5)) == {f"average/{NAMES[1]}"}
