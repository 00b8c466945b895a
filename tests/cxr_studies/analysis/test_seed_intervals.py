import math

import pytest
from scipy import stats

from cxr_studies.analysis.seed_intervals import (
    DOES_NOT_HOLD,
    HOLDS,
    NOT_DECIDED,
    Interval,
    Spread,
    interval,
    spread,
    verdict,
)


def test_it_is_the_t_interval_of_the_mean():
    half = stats.t.ppf(0.975, 2) * 0.1 / math.sqrt(3)
    ends = (pytest.approx(0.2 - half), pytest.approx(0.2 + half))
    assert interval([0.1, 0.2, 0.3]) == Interval(pytest.approx(0.2), *ends, 3)
    assert interval([0.25, 0.25]) == Interval(0.25, 0.25, 0.25, 2)
    assert interval([0.5]) == Interval(0.5, None, None, 1)
    assert interval([]) is None


@pytest.mark.parametrize(
    ("low", "high", "wanted"),
    [
        (0.01, 0.2, HOLDS),
        (-0.2, -0.01, DOES_NOT_HOLD),
        (-0.1, 0.3, NOT_DECIDED),
        (0.0, 0.1, NOT_DECIDED),
        (-0.1, 0.0, NOT_DECIDED),
        (None, None, NOT_DECIDED),
    ],
)
def test_a_verdict_follows_from_where_the_interval_lies(low, high, wanted):
    assert verdict(Interval(0.3, low, high, 3)) == wanted
    assert verdict(None) == NOT_DECIDED


def test_a_spread_is_the_mean_and_the_deviation_of_the_sample_of_what_is_defined():
    wanted = Spread(pytest.approx(0.8), pytest.approx(0.2), 3)
    assert spread([0.6, None, 0.8, math.nan, 1.0]) == wanted
    assert spread([0.6]) == Spread(0.6, None, 1)
    assert spread([None, math.nan]) is None
