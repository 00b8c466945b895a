import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.multitest import multipletests

from cxr_studies.analysis.paired_tests import PAIRED_T, WILCOXON, compare_pairs, holm, mark
from cxr_studies.analysis.seed_intervals import interval

NAN = math.nan

# Student, The Probable Error of a Mean, 1908: hours of sleep that two drugs gained.
SLEEP = (
    [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0],
    [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4],
)

# Darwin's maize, crossed less self-fertilised, eighths of an inch: Fisher, The Design of
# Experiments, 1935, section 17.
MAIZE = [49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48]

# Hollander and Wolfe, Nonparametric Statistical Methods, 1973, table 3.1: depression before and
# after a tranquilliser; with 16.2 for 1.62, as a problem there has it.
DEPRESSION = (
    [1.83, 0.50, 16.2, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30],
    [0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29],
)

values = st.one_of(st.none(), st.just(NAN), st.integers(0, 1000).map(lambda n: n / 1000))
pairs = st.lists(st.tuples(values, values), max_size=20)


@pytest.mark.parametrize(
    ("first", "second", "test", "statistic", "p"),
    [
        (MAIZE, [0] * 15, PAIRED_T, 2.148, 0.0497),
        # One pair does not differ, the other nine have one sign: 2 of 2 ** 9 ways.
        (*SLEEP, WILCOXON, 0, 2 / 2**9),
        (*DEPRESSION, WILCOXON, 45 - 40, 2 * 0.01953),  # one-sided there
        # Of the ranks 1 to 6, ten sets sum to 5 or less: of none, 1, 2, 3, 4, 5, 12, 13, 14, 23.
        ([*[0] * 8, 1, 2, 3, 4, -5, 600], [0] * 14, WILCOXON, 5, 2 * 10 / 2**6),
        ([0.3, 0.4, 0.5, 0.6], [0.2, 0.3, 0.4, 0.5], WILCOXON, 0, 2 / 2**4),  # all by 0.1
        ([0.1 + 0.2, 0.5, 0.6], [0.3, 0.5, 0.6], None, None, 1),
        ([0.5, 0.75], [0.25, 0.25], None, None, None),
        ([], [], None, None, None),
    ],
)
def test_a_paired_t_test_decides_where_differences_are_normal_else_signed_ranks(
    first, second, test, statistic, p
):
    found = compare_pairs(first, second)
    assert (found.test, found.pairs, found.left_out) == (test, len(first), 0)
    assert (found.statistic, found.p) == (
        pytest.approx(statistic, abs=5e-4),
        pytest.approx(p, abs=5e-5),
    )


def test_the_paired_t_test_is_told_whichever_decides():
    found = compare_pairs(*SLEEP)
    assert found.normality == pytest.approx(0.0333, abs=5e-5)
    assert found.t == pytest.approx(-4.0621, abs=5e-5)
    assert found.t_p == pytest.approx(0.002833, abs=5e-7)
    wanted = (-1.58, -2.4598858, -0.7001142)
    told = found.difference
    assert (told.mean, told.low, told.high) == pytest.approx(wanted, abs=5e-8)


@given(pairs)
def test_pairs_that_both_define_are_tested_as_scipy_does(drawn):
    first, second = [a for a, _ in drawn], [b for _, b in drawn]
    defined = [pair for pair in drawn if None not in pair and NAN not in pair]
    exact = [round(1000 * a) - round(1000 * b) for a, b in defined]
    found = compare_pairs(first, second)
    assert (found.pairs, found.left_out) == (len(defined), len(drawn) - len(defined))
    assert found.difference == interval([n / 1000 for n in exact])
    if len(defined) < 3:
        assert (found.test, found.p, found.normality, found.t) == (None,) * 4
    elif not any(exact):
        assert (found.test, found.statistic, found.p) == (None, None, 1)
    elif len(set(exact)) == 1:
        assert (found.test, found.normality, found.t) == (WILCOXON, None, None)
        assert found.p == pytest.approx(stats.wilcoxon(exact).pvalue)
    else:
        assert found.normality == pytest.approx(stats.shapiro(exact).pvalue)
        normal = found.normality >= 0.05
        expected = stats.ttest_rel(exact, [0] * len(exact)) if normal else stats.wilcoxon(exact)
        assert found.test == (PAIRED_T if normal else WILCOXON)
        assert found.statistic == pytest.approx(expected.statistic)
        assert found.p == pytest.approx(expected.pvalue)


def test_lists_of_other_lengths_are_refused():
    with pytest.raises(ValueError, match="a value for each pair; got 2 and 1"):
        compare_pairs([1, 2], [1])


def test_holm_multiplies_by_how_many_are_left_and_never_falls_behind():
    # 4 * 0.005, 3 * 0.01, 2 * 0.03, and 1 * 0.04 that may not be below the one before.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([None, 0.02, None, 0.5]) == [None, pytest.approx(0.04), None, 0.5]
    assert holm([]) == []
    p_values = np.random.default_rng(0).beta(0.3, 2, 40).round(2).tolist()  # with ties
    expected = multipletests(p_values, method="holm")[1]
    assert holm(p_values) == pytest.approx(expected.tolist(), abs=1e-15)


def test_marks_of_significance_have_their_limits():
    stars = {1: "ns", 0.05: "ns", 0.0499: "*", 0.01: "*", 0.0099: "**", 0.001: "**", 0.0009: "***"}
    assert {p: mark(p) for p in stars} == stars
    assert mark(0) == "***" and mark(None) == ""
