"""Means over seeds with their intervals, what these decide, and means over classes with an SD."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from cxr_study.evaluation.bootstrap import CONFIDENCE

HOLDS, DOES_NOT_HOLD, NOT_DECIDED = "holds", "does not hold", "not decided"


@dataclass(frozen=True)
class Interval:
    """A mean over seeds and its 95 % t interval; no ends with fewer than two seeds."""

    mean: float
    low: float | None
    high: float | None
    seeds: int


def interval(values: Sequence[float]) -> Interval | None:
    """Mean of values of several seeds with its t interval; None for no value."""
    if not values:
        return None
    mean = fmean(values)
    if len(values) < 2:
        return Interval(mean, None, None, len(values))
    from scipy import stats  # here, for it takes a second

    error = float(stats.sem(values))
    if math.isclose(error, 0.0, abs_tol=1e-12):
        return Interval(mean, mean, mean, len(values))
    low, high = stats.t.interval(CONFIDENCE, len(values) - 1, loc=mean, scale=error)
    return Interval(mean, float(low), float(high), len(values))


def verdict(difference: Interval | None) -> str:
    """What the interval of a difference says of the claim that it is positive."""
    if difference is None or difference.low is None or difference.high is None:
        return NOT_DECIDED
    if difference.low > 0:
        return HOLDS
    return DOES_NOT_HOLD if difference.high < 0 else NOT_DECIDED


@dataclass(frozen=True)
class Spread:
    """A mean with the standard deviation about it.

    Attributes:
        mean: Over the values that are defined.
        sd: Of the sample, n - 1 in the denominator; None of one value.
    """

    mean: float
    sd: float | None
    values: int


def spread(values: Sequence[float | None]) -> Spread | None:
    """Mean and standard deviation over classes, or over the runs of an ablation.

    The papers write mean ± SD and not which; the sample's, as it is here, is the usual one. With
    14 classes the population's is 4 % less.

    Args:
        values: None or NaN where not defined; those are left out.

    Returns:
        None where no value is defined.
    """
    defined = [v for v in values if v is not None and not math.isnan(v)]
    if not defined:
        return None
    return Spread(fmean(defined), stdev(defined) if len(defined) > 1 else None, len(defined))
