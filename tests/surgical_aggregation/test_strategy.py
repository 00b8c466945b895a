import re

import pytest

from surgical_aggregation import strategy

PATHS = ("conv/kernel", "bn/gamma", "bn/beta", "bn/moving_mean", "bn/moving_variance", "head/bias")


def kept(pattern):
    return [path for path in PATHS if pattern and re.search(pattern, path)]


class TestKeptAtSite:
    def test_fedavg_sends_everything(self):
        assert kept(strategy.kept_at_site("fedavg")) == []

    @pytest.mark.parametrize("name", ["fedbn", "fedbn+"])
    def test_batch_norm_stays(self, name):
        assert kept(strategy.kept_at_site(name)) == list(PATHS[1:5])

    def test_a_personal_head_stays_as_well(self):
        assert kept(strategy.kept_at_site("fedavg", personal_head=True)) == ["head/bias"]
        assert kept(strategy.kept_at_site("fedbn", personal_head=True)) == list(PATHS[1:])

    def test_a_body_layer_whose_name_ends_in_head_is_body(self):
        assert not re.search(strategy.kept_at_site("fedavg", personal_head=True), "overhead/kernel")


class TestPersonal:
    def test_frozen_batch_norm_is_nobodys_own(self):
        assert kept(strategy.personal("fedbn+")) == []
        assert kept(strategy.personal("fedbn+", personal_head=True)) == ["head/bias"]

    def test_fedbn_trains_its_own(self):
        assert kept(strategy.personal("fedbn")) == list(PATHS[1:5])


def test_an_unknown_strategy_is_refused():
    with pytest.raises(strategy.StrategyError, match="got 'fedprox'"):
        strategy.check("fedprox")
