import pytest

from cxr_study.evaluation.seed_intervals import Interval
from cxr_study.evaluation.verdicts import NOT_DECIDED, NOT_REPRODUCED, REPRODUCED, verdict


@pytest.mark.parametrize(
    ("low", "high", "wanted"),
    [
        (0.01, 0.2, REPRODUCED),
        (-0.2, -0.01, NOT_REPRODUCED),
        (-0.1, 0.3, NOT_DECIDED),
        (0.0, 0.1, NOT_DECIDED),
        (-0.1, 0.0, NOT_DECIDED),
    ],
)
def test_it_follows_from_where_the_interval_lies(low, high, wanted):
    assert verdict(Interval((low + high) / 2, low, high, 3)) == wanted


def test_one_seed_or_none_decides_nothing():
    assert verdict(Interval(0.3, None, None, 1)) == NOT_DECIDED
    assert verdict(None) == NOT_DECIDED
