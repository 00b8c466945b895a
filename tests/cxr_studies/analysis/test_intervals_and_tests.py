import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.multitest import multipletests

from cxr_studies.analysis import intervals_and_tests as module
from cxr_studies.analysis.intervals_and_tests import Interval, compare_pairs, delong_test, interval


def test_it_is_the_t_interval_of_the_mean():
    half = stats.t.ppf(0.975, 2) * 0.1 / math.sqrt(3)
    ends = (pytest.approx(0.2 - half), pytest.approx(0.2 + half))
    assert interval([0.1, 0.2, 0.3]) == Interval(pytest.approx(0.2), *ends, 3)
    assert interval([0.25, 0.25]) == Interval(0.25, 0.25, 0.25, 2)
    assert interval([0.5]) == Interval(0.5, None, None, 1)
    assert interval([]) is None


@pytest.mark.parametrize(("low", "high", "wanted"), [
    (0.01, 0.2, module.HOLDS), (-0.2, -0.01, module.DOES_NOT_HOLD),
    *((*ends, module.NOT_DECIDED) for ends in ((-0.1, 0.3), (0.0, 0.1), (-0.1, 0.0), (None, None))),
])  # fmt: skip
def test_a_verdict_follows_from_where_the_interval_lies(low, high, wanted):
    assert module.verdict(Interval(0.3, low, high, 3)) == wanted
    assert module.verdict(None) == module.NOT_DECIDED


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


@pytest.mark.parametrize(("first", "second", "test", "statistic", "p"), [
    (MAIZE, [0] * 15, module.PAIRED_T, 2.148, 0.0497),
    # One pair does not differ, the other nine have one sign: 2 of 2 ** 9 ways.
    (*SLEEP, module.WILCOXON, 0, 2 / 2**9),
    (*DEPRESSION, module.WILCOXON, 45 - 40, 2 * 0.01953),  # one-sided there
    # Of the ranks 1 to 6, ten sets sum to 5 or less: of none, 1, 2, 3, 4, 5, 12, 13, 14, 23.
    ([*[0] * 8, 1, 2, 3, 4, -5, 600], [0] * 14, module.WILCOXON, 5, 2 * 10 / 2**6),
    ([0.3, 0.4, 0.5, 0.6], [0.2, 0.3, 0.4, 0.5], module.WILCOXON, 0, 2 / 2**4),  # all by 0.1
    ([0.1 + 0.2, 0.5, 0.6], [0.3, 0.5, 0.6], None, None, 1),
    ([0.5, 0.75], [0.25, 0.25], None, None, None), ([], [], None, None, None),
])  # fmt: skip
def test_a_t_test_decides_if_normal_else_signed_ranks(first, second, test, statistic, p):
    found = compare_pairs(first, second)
    assert (found.test, found.pairs, found.left_out) == (test, len(first), 0)
    assert found.statistic == pytest.approx(statistic, abs=5e-4)
    assert found.p == pytest.approx(p, abs=5e-5)


@given(pairs)
@example(list(zip(*SLEEP, strict=True)))
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
        assert (found.test, found.normality, found.t) == (module.WILCOXON, None, None)
        assert found.p == pytest.approx(stats.wilcoxon(exact).pvalue)
    else:
        assert found.normality == pytest.approx(stats.shapiro(exact).pvalue)
        normal, t_test = found.normality >= 0.05, stats.ttest_rel(exact, [0] * len(exact))
        assert (found.t, found.t_p) == pytest.approx((t_test.statistic, t_test.pvalue))
        # Wilcoxon leaves out pairs without a difference; SciPy before 1.15 warns of them.
        expected = t_test if normal else stats.wilcoxon([n for n in exact if n])
        assert found.test == (module.PAIRED_T if normal else module.WILCOXON)
        assert found.statistic == pytest.approx(expected.statistic)
        assert found.p == pytest.approx(expected.pvalue)


def test_holm_multiplies_by_how_many_are_left_and_never_falls_behind():
    # 4 * 0.005, 3 * 0.01, 2 * 0.03, and 1 * 0.04 that may not be below the one before.
    assert module.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert module.holm([NAN, 0.02, NAN, 0.5]) == pytest.approx([NAN, 0.04, NAN, 0.5], nan_ok=True)
    assert len(module.holm([])) == 0
    p_values = np.random.default_rng(0).beta(0.3, 2, 40).round(2).tolist()  # with ties
    expected = multipletests(p_values, method="holm")[1]
    assert module.holm(p_values) == pytest.approx(expected.tolist(), abs=1e-15)


def test_marks_of_significance_have_their_limits():
    stars = {1: "ns", 0.0501: "ns", 0.05: "*", 0.0101: "*", 0.01: "**", 0.0011: "**", 0.001: "***"}
    stars |= {0: "***", None: "", NAN: ""}
    assert {p: module.significance_mark(p) for p in stars} == stars


# Ovarian cancer with intestinal obstruction, DeLong et al. 1988, the 43 patients without a gap, as
# printed in SAS/STAT User's Guide, PROC LOGISTIC, "Comparing Receiver Operating Characteristic
# Curves": albumin, total protein, K-G score, label.
OVARIAN = """
3.0 5.8 10 0  3.2 6.3  5 1  3.9 6.8  3 1  2.8 4.8  6 0  3.2 5.8  3 1  0.9 4.0  5 0  2.5 5.7  8 0
1.6 5.6  5 1  3.8 5.7  5 1  3.7 6.7  6 1  3.2 5.4  4 1  3.8 6.6  6 1  4.1 6.6  5 1  3.6 5.7  5 1
4.3 7.0  4 1  3.6 6.7  4 0  2.3 4.4  6 1  4.2 7.6  4 0  4.0 6.6  6 0  3.5 5.8  6 1  3.8 6.8  7 1
3.0 4.7  8 0  4.5 7.4  5 1  3.7 7.4  5 1  3.1 6.6  6 1  4.1 8.2  6 1  4.3 7.0  5 1  4.3 6.5  4 1
3.2 5.1  5 1  2.6 4.7  6 1  3.3 6.8  6 0  1.7 4.0  7 0  3.7 6.1  5 1  3.3 6.3  7 1  4.2 7.7  6 1
3.5 6.2  5 1  2.9 5.7  9 0  2.1 4.8  7 1  2.8 6.2  8 0  4.0 7.0  7 1  3.3 5.7  6 1  3.7 6.9  5 1
3.6 6.6  5 1
"""


def naive(labels, *scores):
    """Areas and their covariance as DeLong et al. define them, pair by pair."""
    positive, negative = np.flatnonzero(labels == 1), np.flatnonzero(labels == 0)
    m, n = len(positive), len(negative)
    v10, v01 = np.zeros((len(scores), m)), np.zeros((len(scores), n))
    for r, score in enumerate(scores):
        for i, x in enumerate(score[positive]):
            for j, y in enumerate(score[negative]):
                psi = 1.0 if y < x else 0.5 if y == x else 0.0
                v10[r, i] += psi / n
                v01[r, j] += psi / m
    areas = v10.mean(axis=1)
    s10 = (v10 - areas[:, None]) @ (v10 - areas[:, None]).T / (m - 1)
    s01 = (v01 - areas[:, None]) @ (v01 - areas[:, None]).T / (n - 1)
    return areas, s10 / m + s01 / n


@st.composite
def drawn(draw):
    """Labels with gaps, at least two of each kind, and two scores with many ties."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    images, values = draw(st.integers(0, 60)), draw(st.integers(2, 12))
    gaps = rng.choice([0.0, 1.0, NAN], size=images, p=[0.5, 0.3, 0.2])
    labels = rng.permutation(np.concatenate([gaps, [0, 0, 1, 1]]))
    return labels, *rng.integers(0, values, size=(2, len(labels))).astype(float)


@given(drawn())
def test_difference_and_error_are_those_of_the_definition(given):
    labels, first, second = given
    areas, covariance = naive(labels, first, second)
    variance = covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1]
    found = delong_test(labels, first, second)
    np.testing.assert_allclose((found.first, found.second), areas)
    assert found.difference == pytest.approx(areas[0] - areas[1], abs=1e-12)
    assert found.error == pytest.approx(np.sqrt(max(variance, 0)), abs=1e-7)


@pytest.mark.parametrize(("score", "published"), [
    (0, [0.0108, 0.0953, -0.1761, 0.1976, 0.0127, 0.9102]),
    (1, [-0.0780, 0.1046, -0.2830, 0.1271, 0.5554, 0.4561]),
], ids=["albumin", "total protein"])  # fmt: skip
def test_against_k_g_it_is_the_published_one(score, published):
    *scores, k_g, labels = np.array(OVARIAN.split(), dtype=float).reshape(-1, 4).T
    found = delong_test(labels, scores[score], -k_g)  # a high one is a bad sign
    got = (found.difference, found.error, found.low, found.high, found.z**2, found.p)
    assert [round(v, 4) for v in got] == published


@pytest.mark.parametrize(("first", "second", "difference", "z", "p"), [
    ([1, 3, 4, 2, 5, 6], [10, 30, 40, 20, 50, 60], 0, 0, 1),  # ranked alike
    ([1, 2, 3, 4, 5, 6], [1, 1, 1, 1, 1, 1], 1 / 2, None, None),
    ([1, 3, 5, 2, 4, 6], [2, 4, 6, 1, 3, 5], 1 / 3, None, None),  # each one place apart
])  # fmt: skip
def test_without_variance_areas_that_differ_cannot_be_tested(first, second, difference, z, p):
    labels = np.array([0.0, 0, 0, 1, 1, 1])
    found = delong_test(labels, np.array(first, float), np.array(second, float))
    assert found.difference == pytest.approx(difference)
    assert (found.error, found.z, found.p) == (0, z, p)
    assert (found.low, found.high) == ((None, None) if z is None else (0, 0))


@pytest.mark.parametrize(
    ("labels", "third"), [([0, 0, 0, 1], 3), ([0, 1, 1, 1], 3), ([NAN] * 4, 3), ([0, 0, 1, 1], NAN)]
)
def test_it_needs_two_of_each_kind_and_scores_of_both_models(labels, third):
    labels, scores = np.array(labels, float), np.array([1.0, 2, third, 4])
    assert delong_test(labels, scores, np.arange(4.0)) is None
    assert delong_test(labels, np.arange(4.0), scores) is None
