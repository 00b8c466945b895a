"""Intervals of what is measured once for each seed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

CONFIDENCE = 0.95


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
