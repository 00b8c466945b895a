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
"""Level of all tests, and below which Shapiro-Wilk rejects normality."""

_PAIRS = 3  # at least: what Shapiro-Wilk needs
_DECIMALS = 12  # what differs by less is equal, and ties in ranks are ties
_OF_EACH = 2  # positives, and negatives: a variance among fewer is not defined
_ROUNDING = 1e-28  # a variance below it is that of equal numbers


@dataclass(frozen=True)
class Interval:
    """A mean over seeds with its 95 % t interval.

    Attributes:
        mean: Arithmetic mean.
        low: Lower end; None with fewer than two seeds.
        high: Upper end, likewise.
        seeds: Number of values.
    """

    mean: float
    low: float | None
    high: float | None
    seeds: int


def interval(values: Sequence[float]) -> Interval | None:
    """Mean of the values of several seeds with its 95 % t interval.

    Args:
        values: One for each seed, none of them NaN.

    Returns:
        None for no value; an interval without ends for one. Where all values are equal, both ends
        are the mean.

    Example:
        >>> interval([0.8, 0.9]).mean
        0.8500000000000001
    """
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
    """Whether a difference is shown to be positive.

    Args:
        difference: With its interval; None where there is no seed.

    Returns:
        `HOLDS` where the whole interval is above 0, `DOES_NOT_HOLD` where it is below,
        `NOT_DECIDED` where it includes 0 or is not defined.
    """
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
        t_p: Two-sided p of that t-test.
        difference: Mean of first minus second with its 95 % t interval, over the pairs; None
            without a pair. It is the mean also where the test is of ranks.
        pairs: Number of pairs that were compared.
        left_out: Number of pairs that were not, because one side or both are not defined.
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

    As in the papers this is a paired t-test where Shapiro-Wilk does not reject normality of the
    differences (p >= 0.05). Otherwise it is a Wilcoxon signed-rank test, exact for up to 50 pairs
    without ties, with pairs that do not differ dropped. Differences that are all equal, and not 0,
    count as not normal.

    Args:
        first: AUROCs of one method, one per class, or one mean per run; None or NaN where not
            defined.
        second: Of the other method, for the same classes or runs in the same order.

    Returns:
        The test; differences are rounded to 12 decimals first, so that equal ones are ties.

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


def holm(p_values: Sequence[float] | Floats) -> Floats:
    """Adjust the p values of a family of tests by Holm's step-down procedure.

    The probability that any true null hypothesis of the family is rejected is then at most the
    level of a single test.

    Args:
        p_values: Of the family; NaN for a test that could not decide, which is no member.

    Returns:
        Adjusted p values in the same order, at most 1; NaN where the p value is NaN.

    Source:
        Holm, A Simple Sequentially Rejective Multiple Test Procedure, Scandinavian Journal of
        Statistics 6, 1979, 65-70.

    Example:
        >>> holm([0.01, np.nan, 0.04]).tolist()
        [0.02, nan, 0.04]
    """
    # statsmodels' multipletests gives the same, but looks for garbage in each call: 0.1 s.
    adjusted = np.array(p_values, float)
    order = adjusted.argsort()[: np.count_nonzero(~np.isnan(adjusted))]  # NaN sorts last
    steps = adjusted[order] * np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1)
    return adjusted


def significance_mark(p: float | None) -> str:
    """Mark of significance as in ML4H 2024.

    The marks of arXiv:2301.06683, v1, do not include the limits.

    Args:
        p: Adjusted p value; None or NaN where no test could decide.

    Returns:
        "***" for p <= 0.001, "**" for p <= 0.01, "*" for p <= 0.05, else "ns"; "" without a test.
    """
    if p is None or math.isnan(p):
        return ""
    for limit, stars in ((0.001, "***"), (0.01, "**"), (SIGNIFICANCE, "*")):
        if p <= limit:
            return stars
    return "ns"


@dataclass(frozen=True)
class DelongTest:
    """Two AUROCs of one class on the same images, compared.

    Attributes:
        first: AUROC of the first model.
        second: AUROC of the second model.
        difference: First minus second.
        error: Standard error of the difference.
        low: Lower end of the difference's 95 % interval; None where z is.
        high: Upper end of it; likewise.
        z: Difference over its standard error; 0 where the two rank all pairs of a positive and a
            negative alike. None where the areas differ but their difference has no variance.
        p: Two-sided; 1 where z is 0, None where z is None.
    """

    first: float
    second: float
    difference: float
    error: float
    low: float | None
    high: float | None
    z: float | None
    p: float | None


def delong_test(labels: Floats, first: Floats, second: Floats) -> DelongTest | None:
    """Test whether two models have the same AUROC on the same images; two-sided.

    The test assumes that images are independent. Where patients have several images, they are not:
    the interval is too narrow and p too small. The bootstrap by patient (`bootstrap`) accounts for
    it.

    Args:
        labels: 1, 0 or NaN (not labelled: left out), shape (images,).
        first: Scores of one model, same shape.
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
    if z is None:
        return DelongTest(*areas, difference, error, None, None, None, None)
    half = float(stats.norm.ppf((1 + CONFIDENCE) / 2)) * error
    ends = difference - half, difference + half
    return DelongTest(*areas, difference, error, *ends, z, float(2 * stats.norm.sf(abs(z))))


def _placements(labels: Floats, scores: Floats) -> tuple[Floats, Floats] | None:
    """Shares of the negatives below each positive, and of the positives below each negative.

    Ties count half. The mean of either array is the AUROC. None where it is not defined.
    """
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
