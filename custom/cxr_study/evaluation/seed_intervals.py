"""Means over seeds with their intervals, and what these decide."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

CONFIDENCE = 0.95

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
    from scipy import stats  # here, for it takes a second and every command imports this module

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
