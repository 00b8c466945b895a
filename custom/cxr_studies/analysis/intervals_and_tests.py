"""Intervals over seeds and what they decide, paired tests, Holm's correction, DeLong's test."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np
from scipy import stats

from cxr_study.evaluation.bootstrap import CONFIDENCE
from surgical_aggregation.aggregation.metrics import Floats

HOLDS, DOES_NOT_HOLD, NOT_DECIDED = "holds", "does not hold", "not decided"

PAIRED_T, WILCOXON = "paired t-test", "Wilcoxon signed-rank test"

SIGNIFICANCE = 0.05

_PAIRS = 3  # at least: what Shapiro-Wilk needs
_DECIMALS = 12  # what differs by less is equal, and ties in ranks are ties
_OF_EACH = 2  # positives, and negatives: a variance among fewer is not defined
_ROUNDING = 1e-28  # a variance below it is that of equal numbers


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
class PairedTest:
    """Two methods compared on the same classes or runs.

    Attributes:
        test: `PAIRED_T` or `WILCOXON`, whichever decided; None where none could.
        statistic: Its t, or the smaller sum of signed ranks; None without a test.
        p: Two-sided; None where fewer than 3 pairs are left, 1 where no pair differs.
        normality: p of Shapiro-Wilk on the differences; None where they do not vary or fewer than
            3 are left.
        t: Of the paired t-test, as the papers have it, whichever test decided; None likewise.
        difference: Mean of first minus second with its 95 % t interval, over the pairs; None
            without a pair. It is the mean also where the test is of ranks.
        pairs: How many were compared.
        left_out: How many were not, for one side or both are not defined.
    """

    test: str | None
    statistic: float | None
    p: float | None
    normality: float | None
    t: float | None
    t_p: float | None
    difference: Interval | None
    pairs: int
    left_out: int


def compare_pairs(first: Sequence[float | None], second: Sequence[float | None]) -> PairedTest:
    """Test whether two methods differ, value by value.

    As in the papers a paired t-test, where Shapiro-Wilk leaves the differences for normal (p >=
    0.05); where it does not, a Wilcoxon signed-rank test, exact for up to 50 pairs without ties,
    with pairs that do not differ dropped. Differences that are all the same, and not 0, are not
    normal.

    Args:
        first: AUROCs of the one method, one per class, or one mean per run; None or NaN where not
            defined.
        second: Of the other method, for the same classes or runs in the same order.

    Source:
        Kulkarni et al., arXiv:2301.06683, v2, section IV; the signed ranks are this project's.
    """
    both = np.array([first, second], dtype=float)
    differences = np.round(both[0] - both[1], _DECIMALS)
    differences = differences[~np.isnan(differences)]
    test = statistic = p = normality = t = t_p = None
    if len(differences) >= _PAIRS:
        if np.ptp(differences):
            normality = float(stats.shapiro(differences).pvalue)
            t, t_p = map(float, stats.ttest_1samp(differences, 0))
        if not differences.any():
            p = 1.0
        elif normality is not None and normality >= SIGNIFICANCE:
            test, statistic, p = PAIRED_T, t, t_p
        else:
            test = WILCOXON
            statistic, p = map(float, stats.wilcoxon(differences[differences != 0]))
    pairs, mean = len(differences), interval(differences.tolist())
    return PairedTest(test, statistic, p, normality, t, t_p, mean, pairs, len(first) - pairs)


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Adjust the p values of a family of tests, so that it is wrong at most as often as one test.

    A test that could not decide, None, is no member and stays None.

    Source:
        Holm, A Simple Sequentially Rejective Multiple Test Procedure, Scandinavian Journal of
        Statistics 6, 1979, 65-70.
    """
    # statsmodels' multipletests gives the same, but looks for garbage in each call: 0.1 s.
    members = np.array([p for p in p_values if p is not None])
    order = members.argsort()
    adjusted = np.empty(len(members))
    steps = members[order] * np.arange(len(members), 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1)
    left = iter(adjusted.tolist())
    return [None if p is None else next(left) for p in p_values]


def mark(p: float | None) -> str:
    """Mark of significance as in ML4H 2024: * p <= 0.05, ** <= 0.01, *** <= 0.001, else ns.

    "" where there is no p. The marks of arXiv:2301.06683, v1, do not include the limits.
    """
    if p is None:
        return ""
    for limit, stars in ((0.001, "***"), (0.01, "**"), (SIGNIFICANCE, "*")):
        if p <= limit:
            return stars
    return "ns"


@dataclass(frozen=True)
class DelongTest:
    """Two AUROCs of one class on the same images, compared.

    Attributes:
        difference: First area minus second, with the ends of its 95 % interval, `low` and `high`.
        error: Standard error of the difference.
        z: Difference over its standard error; 0 where the two rank all pairs of a positive and a
            negative alike. None where the areas differ but their difference has no variance.
        p: Two-sided; 1 where z is 0, None where z is None.
    """

    first: float
    second: float
    difference: float
    error: float
    low: float
    high: float
    z: float | None
    p: float | None


def delong_test(labels: Floats, first: Floats, second: Floats) -> DelongTest | None:
    """Test whether two models have the same AUROC on the same images; two-sided.

    It takes images for independent. Where patients have several images they are not, and the
    interval comes out too narrow, p too small: the bootstrap by patient (`bootstrap`) accounts for
    it.

    Args:
        labels: 1, 0 or NaN (not labelled: left out), shape (images,).
        first: Scores of the one model, same shape.
        second: Scores of the other.

    Returns:
        None, "not defined", with fewer than two positives or two negatives, or with a score that
        is NaN (a model lacks the class).

    Sources:
        DeLong, DeLong and Clarke-Pearson, Comparing the Areas under Two or More Correlated Receiver
        Operating Characteristic Curves: A Nonparametric Approach, Biometrics 44, 1988, 837-845.

        Sun and Xu, Fast Implementation of DeLong's Algorithm for Comparing the Areas Under
        Correlated Receiver Operating Characteristic Curves, IEEE Signal Processing Letters 21,
        2014, 1389-1393: the same by midranks, in O(n log n).
    """
    one, other = _placements(labels, first), _placements(labels, second)
    if one is None or other is None:
        return None
    areas = float(one[0].mean()), float(other[0].mean())
    difference = areas[0] - areas[1]
    error = _error(one[0] - other[0], one[1] - other[1])
    z: float | None
    if error:
        z = difference / error
    else:
        z = 0.0 if math.isclose(difference, 0, abs_tol=1e-12) else None
    half = float(stats.norm.ppf((1 + CONFIDENCE) / 2)) * error
    p = None if z is None else float(2 * stats.norm.sf(abs(z)))
    return DelongTest(*areas, difference, error, difference - half, difference + half, z, p)


def _placements(labels: Floats, scores: Floats) -> tuple[Floats, Floats] | None:
    """Shares of the negatives below each positive, and of the positives below each negative."""
    positives, negatives = scores[labels == 1], scores[labels == 0]
    m, n = len(positives), len(negatives)
    together = np.concatenate([positives, negatives])
    if min(m, n) < _OF_EACH or np.isnan(together).any():
        return None
    ranks = stats.rankdata(together)
    return (ranks[:m] - stats.rankdata(positives)) / n, (ranks[m:] - stats.rankdata(negatives)) / m


def _error(positives: Floats, negatives: Floats) -> float:
    """Standard error of the mean placement, or difference of placements."""
    variance = positives.var(ddof=1) / len(positives) + negatives.var(ddof=1) / len(negatives)
    return math.sqrt(variance) if variance > _ROUNDING else 0.0
