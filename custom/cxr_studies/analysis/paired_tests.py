"""Paired comparisons of two methods, and the correction for making many of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from cxr_studies.analysis.seed_intervals import Interval, interval

PAIRED_T, WILCOXON = "paired t-test", "Wilcoxon signed-rank test"

SIGNIFICANCE = 0.05

_FEWEST = 3  # pairs: what Shapiro-Wilk needs
_DECIMALS = 12  # what differs by less is equal, and ties in ranks are ties


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

    Raises:
        ValueError: The two are not of one length.

    Source:
        Kulkarni et al., arXiv:2301.06683, v2, section IV; the signed ranks are this project's.
    """
    if len(first) != len(second):
        raise ValueError(
            f"first and second need a value for each pair; got {len(first)} and {len(second)}."
        )
    both = np.array([first, second], dtype=float)
    differences = np.round(both[0] - both[1], _DECIMALS)
    differences = differences[~np.isnan(differences)]
    test = statistic = p = normality = t = t_p = None
    if len(differences) >= _FEWEST:
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
    """Mark of significance as in the papers: * p < 0.05, ** < 0.01, *** < 0.001, else ns.

    "" where there is no p. The captions of the conference paper include the limits themselves,
    those of arXiv:2301.06683, v1, do not.
    """
    if p is None:
        return ""
    for limit, stars in ((0.001, "***"), (0.01, "**"), (SIGNIFICANCE, "*")):
        if p < limit:
            return stars
    return "ns"
