import numpy as np
import pytest
from nvflare.apis.dxo import DXO, DataKind, from_shareable
from nvflare.apis.fl_context import FLContext

from surgical_aggregation.keep_at_site import KeepAtSite
from surgical_aggregation.strategy import StrategyError

VARIABLES = ("conv/kernel", "bn/moving_mean", "head/kernel")


def sent(kind=DataKind.WEIGHTS, **args):
    result = DXO(kind, data={name: np.zeros(1) for name in VARIABLES}).to_shareable()
    return list(from_shareable(KeepAtSite(**args).process(result, FLContext())).data)


@pytest.mark.parametrize("kind", [DataKind.WEIGHTS, DataKind.WEIGHT_DIFF])
def test_what_the_strategy_keeps_is_not_sent(kind):
    assert sent(kind, strategy="fedbn") == ["conv/kernel", "head/kernel"]
    assert sent(kind, strategy="fedbn+", personal_head=True) == ["conv/kernel"]


def test_what_has_been_left_out_already_is_not_warned_of(caplog):
    sent(strategy="fedavg", personal_head=True)
    result = DXO(DataKind.WEIGHTS, data={"conv/kernel": np.zeros(1)}).to_shareable()
    filter_ = KeepAtSite(strategy="fedavg", personal_head=True)
    assert list(from_shareable(filter_.process(result, FLContext())).data) == ["conv/kernel"]
    assert caplog.text == ""


def test_fedavg_sends_all():
    assert sent(strategy="fedavg") == list(VARIABLES)


def test_an_unknown_strategy_does_not_switch_the_filter_off():
    with pytest.raises(StrategyError, match="got 'fedBN'"):
        KeepAtSite(strategy="fedBN")
