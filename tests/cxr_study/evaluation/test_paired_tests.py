import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.multitest import multipletests

from cxr_study.evaluation.paired_tests import (
    PAIRED_T,
    WILCOXON,
    PairedTest,
    compare_pairs,
    holm,
    mark,
)
from cxr_study.evaluation.seed_intervals import interval

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

values = st.one_of(st.none(), st.integers(0, 1000).map(lambda n: n / 1000))
pairs = st.lists(st.tuples(values, values), max_size=20)


class TestComparePairs:
    def test_the_paired_t_test_decides_where_differences_are_normal(self):
        found = compare_pairs(MAIZE, [0] * 15)
        assert (found.test, found.pairs, found.left_out) == (PAIRED_T, 15, 0)
        assert (found.statistic, found.p) == (pytest.approx(2.148, abs=5e-4), found.t_p)
        assert found.p == pytest.approx(0.0497, abs=5e-5)
        assert found.statistic == found.t
        assert found.difference.mean == pytest.approx(20.93, abs=5e-3)
        assert (found.difference.low, found.difference.high) == (
            pytest.approx(0.03, abs=5e-3),
            pytest.approx(41.84, abs=5e-3),
        )

    def test_signed_ranks_decide_where_they_are_not(self):
        found = compare_pairs(*SLEEP)
        assert (found.test, found.pairs) == (WILCOXON, 10)
        assert found.normality == pytest.approx(0.0333, abs=5e-5)
        # One pair does not differ, the other nine have one sign: 2 of 2 ** 9 ways.
        assert (found.statistic, found.p) == (0, pytest.approx(2 / 2**9))

    def test_an_outlier_leaves_the_signed_ranks_as_published(self):
        found = compare_pairs(*DEPRESSION)
        assert (found.test, found.statistic) == (WILCOXON, 45 - 40)
        assert found.p == pytest.approx(2 * 0.01953, abs=1e-5)  # one-sided there

    def test_pairs_that_do_not_differ_have_no_rank(self):
        found = compare_pairs([*[0] * 8, 1, 2, 3, 4, -5, 600], [0] * 14)
        assert (found.test, found.statistic, found.pairs) == (WILCOXON, 5, 14)
        # Of the ranks 1 to 6, ten sets sum to 5 or less: of none, 1, 2, 3, 4, 5, 12, 13, 14, 23.
        assert found.p == pytest.approx(2 * 10 / 2**6)

    def test_the_paired_t_test_is_told_whichever_decides(self):
        found = compare_pairs(*SLEEP)
        assert found.t == pytest.approx(-4.0621, abs=5e-5)
        assert found.t_p == pytest.approx(0.002833, abs=5e-7)
        assert found.difference.mean == pytest.approx(-1.58)
        assert found.difference.low == pytest.approx(-2.4598858, abs=5e-8)
        assert found.difference.high == pytest.approx(-0.7001142, abs=5e-8)

    @given(pairs)
    def test_it_is_scipys_choice_by_choice(self, drawn):
        first, second = [a for a, _ in drawn], [b for _, b in drawn]
        defined = [(a, b) for a, b in drawn if a is not None and b is not None]
        exact = [round(1000 * a) - round(1000 * b) for a, b in defined]
        found = compare_pairs(first, second)
        assert (found.pairs, found.left_out) == (len(defined), len(drawn) - len(defined))
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

    def test_a_pair_that_one_side_does_not_define_is_left_out_and_counted(self):
        found = compare_pairs([0.1, None, 0.5, NAN, 0.7, 0.9], [0.2, 0.3, None, 0.4, 0.5, 0.3])
        assert (found.pairs, found.left_out) == (3, 3)
        assert found.difference == interval([-0.1, 0.2, 0.6])

    def test_two_pairs_have_a_mean_difference_and_no_test(self):
        found = compare_pairs([0.5, 0.75], [0.25, 0.25])
        assert found == PairedTest(None, None, None, None, None, None, interval([0.25, 0.5]), 2, 0)
        assert compare_pairs([], []) == PairedTest(*[None] * 7, 0, 0)

    def test_methods_that_agree_everywhere_do_not_differ(self):
        found = compare_pairs([0.1 + 0.2, 0.5, 0.6], [0.3, 0.5, 0.6])
        assert (found.test, found.p) == (None, 1)
        assert (found.difference.low, found.difference.high) == (0, 0)

    def test_a_difference_that_is_the_same_everywhere_is_tested_by_its_sign(self):
        found = compare_pairs([0.3, 0.4, 0.5, 0.6], [0.2, 0.3, 0.4, 0.5])
        assert (found.test, found.normality, found.t) == (WILCOXON, None, None)
        assert found.p == pytest.approx(2 / 2**4)

    def test_lists_of_other_lengths_are_refused(self):
        with pytest.raises(ValueError, match="a value for each pair; got 2 and 1"):
            compare_pairs([1, 2], [1])


class TestHolm:
    def test_it_multiplies_by_how_many_are_left_and_never_falls_behind(self):
        # 4 * 0.005, 3 * 0.01, 2 * 0.03, and 1 * 0.04 that may not be below the one before.
        assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])

    def test_a_test_that_could_not_decide_is_no_member_of_the_family(self):
        assert holm([None, 0.02, None, 0.5]) == [None, pytest.approx(0.04), None, 0.5]
        assert holm([None]) == [None]
        assert holm([]) == []

    @pytest.mark.parametrize("number", [1, 2, 7, 40])
    def test_it_is_statsmodels(self, number):
        p_values = np.random.default_rng(number).beta(0.3, 2, number).round(2).tolist()  # with ties
        expected = multipletests(p_values, method="holm")[1]
        assert holm(p_values) == pytest.approx(expected.tolist(), abs=1e-15)


class TestMark:
    @pytest.mark.parametrize(
        ("p", "expected"),
        [
            (1, "ns"),
            (0.05, "ns"),
            (0.0499, "*"),
            (0.01, "*"),
            (0.0099, "**"),
            (0.001, "**"),
            (0.0009, "***"),
            (0, "***"),
            (None, ""),
        ],
    )
    def test_each_limit_is_the_first_that_has_no_more_stars(self, p, expected):
        assert mark(p) == expected
