import numpy as np
import pytest

from surgical_aggregation.aggregation import strategy
from surgical_aggregation.aggregation.variable_kinds import VariableKinds

BATCH_NORM = frozenset(f"bn/{n}" for n in ("gamma", "beta", "moving_mean", "moving_variance"))
CONSTANT = frozenset({"normalization/mean"})
KINDS = VariableKinds(BATCH_NORM, CONSTANT)


@pytest.mark.parametrize(
    ("name", "kept", "personal"),
    [
        ("fedavg", CONSTANT, frozenset()),
        ("fedbn", BATCH_NORM | CONSTANT, BATCH_NORM),
        ("fedbn+", BATCH_NORM | CONSTANT, frozenset()),
    ],
)
def test_what_becomes_of_batch_norm(name, kept, personal):
    assert strategy.kept_at_site(name, KINDS) == kept
    assert strategy.personal(name, KINDS) == personal
    assert strategy.has_personal(name) == bool(personal)
    assert strategy.has_personal(name, personal_head=True)


def test_an_unknown_strategy_is_refused():
    with pytest.raises(strategy.StrategyError, match="got 'fedprox'"):
        strategy.check("fedprox")


class TestCheckStart:
    def body(self, mean=0.0, variance=1.0):
        """Two layers, one as it was made and one with other statistics."""
        fresh = {path: np.full(2, float("variance" in path), np.float32) for path in BATCH_NORM}
        seen = {"bn/moving_mean": mean, "bn/moving_variance": variance}
        other = {path.replace("bn", "late"): np.full(2, v, np.float32) for path, v in seen.items()}
        return {**fresh, **other, "normalization/mean": np.zeros(2, np.float32)}

    def check(self, name, body, kinds=None):
        batch_norm = frozenset(path for path in body if path.startswith(("bn/", "late/")))
        strategy.check_start(name, kinds or VariableKinds(batch_norm, CONSTANT), body)

    def test_batch_norm_that_has_seen_no_image_cannot_be_frozen_but_trained(self):
        with pytest.raises(
            strategy.StrategyError, match=r"all 4 variables.*'fedavg' or 'fedbn', or .*trained"
        ):
            self.check("fedbn+", self.body())
        for name in ("fedavg", "fedbn"):
            self.check(name, self.body())
        self.check("fedbn+", self.body(), VariableKinds())  # without batch normalisation

    @pytest.mark.parametrize("seen", [{"mean": 0.1}, {"variance": 0.9}])
    def test_one_layer_that_has_seen_some_is_enough(self, seen):
        self.check("fedbn+", self.body(**seen))
