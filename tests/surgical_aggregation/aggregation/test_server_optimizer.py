"""Steps of the server's optimizer against a naive loop."""

import math

import numpy as np
import pytest

from surgical_aggregation.aggregation.server_optimizer import check, step, without

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
    (("adam", 1.0, 0.9), "must be one of .* got 'adam'"),
    (("fedavgm", -0.1, 0.9), "learning_rate must be 0 or more; got -0.1"),
    (("fedavgm", math.nan, 0.9), "learning_rate must be 0 or more; got nan"),
    (("fedadam", 1.0, 1.0), r"momentum must be at least 0 and below 1; got 1.0"),
    (("fedadam", 1.0, -0.1), "momentum"),
])  # fmt: skip
def test_settings_out_of_range_are_refused(settings, reason):
    with pytest.raises(ValueError, match=reason):
        check(*settings)
