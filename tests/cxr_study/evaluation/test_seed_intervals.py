import math

import pytest
from scipy import stats

from cxr_study.evaluation.seed_intervals import (
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
    found = interval([0.1, 0.2, 0.3])
    half = stats.t.ppf(0.975, 2) * 0.1 / math.sqrt(3)
    assert (found.mean, found.seeds) == (pytest.approx(0.2), 3)
    assert (found.low, found.high) == (pytest.approx(0.2 - half), pytest.approx(0.2 + half))


def test_one_seed_has_no_ends_and_none_no_interval():
    assert interval([0.5]) == Interval(0.5, None, None, 1)
    assert interval([]) is None


def test_values_that_do_not_differ_have_an_interval_without_width():
    assert interval([0.25, 0.25]) == Interval(0.25, 0.25, 0.25, 2)


@pytest.mark.parametrize(
    ("low", "high", "wanted"),
    [
        (0.01, 0.2, HOLDS),
        (-0.2, -0.01, DOES_NOT_HOLD),
        (-0.1, 0.3, NOT_DECIDED),
        (0.0, 0.1, NOT_DECIDED),
        (-0.1, 0.0, NOT_DECIDED),
    ],
)
def test_a_verdict_follows_from_where_the_interval_lies(low, high, wanted):
    assert verdict(Interval((low + high) / 2, low, high, 3)) == wanted


def test_one_seed_or_none_decides_nothing():
    assert verdict(Interval(0.3, None, None, 1)) == NOT_DECIDED
    assert verdict(None) == NOT_DECIDED


class TestSpread:
    def test_it_is_the_mean_and_the_deviation_of_the_sample(self):
        assert spread([0.6, 0.8, 1.0]) == Spread(pytest.approx(0.8), pytest.approx(0.2), 3)

    def test_what_is_not_defined_is_left_out(self):
        assert spread([0.6, None, 0.8, math.nan, 1.0]) == spread([0.6, 0.8, 1.0])
        assert spread([None, math.nan]) is None
        assert spread([]) is None

    def test_one_value_has_no_deviation(self):
        assert spread([0.6]) == Spread(0.6, None, 1)
