import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cxr_studies.analysis.delong import delong_test

NAN = np.nan

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


def ovarian():
    """Label, and the scores of albumin, total protein and K-G (a high one is a bad sign)."""
    albumin, protein, k_g, label = np.array(OVARIAN.split(), dtype=float).reshape(-1, 4).T
    return label, {"albumin": albumin, "protein": protein, "K-G": -k_g}


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


@pytest.mark.parametrize(
    ("score", "published"),
    [
        ("albumin", [0.0108, 0.0953, -0.1761, 0.1976, 0.0127, 0.9102]),
        ("protein", [-0.0780, 0.1046, -0.2830, 0.1271, 0.5554, 0.4561]),
    ],
)
def test_against_k_g_it_is_the_published_one(score, published):
    labels, scores = ovarian()
    found = delong_test(labels, scores[score], scores["K-G"])
    got = (found.difference, found.error, found.low, found.high, found.z**2, found.p)
    assert [round(v, 4) for v in got] == published


@pytest.mark.parametrize(
    ("first", "second", "difference", "z", "p"),
    [
        ([1, 3, 4, 2, 5, 6], [10, 30, 40, 20, 50, 60], 0, 0, 1),  # ranked alike
        ([1, 2, 3, 4, 5, 6], [1, 1, 1, 1, 1, 1], 1 / 2, None, None),
        ([1, 3, 5, 2, 4, 6], [2, 4, 6, 1, 3, 5], 1 / 3, None, None),  # each one place apart
    ],
)
def test_without_variance_areas_that_differ_cannot_be_tested(first, second, difference, z, p):
    labels = np.array([0.0, 0, 0, 1, 1, 1])
    found = delong_test(labels, np.array(first, float), np.array(second, float))
    assert (found.difference, found.low, found.high) == pytest.approx((difference,) * 3)
    assert (found.error, found.z, found.p) == (0, z, p)


@pytest.mark.parametrize(
    ("labels", "third"), [([0, 0, 0, 1], 3), ([0, 1, 1, 1], 3), ([NAN] * 4, 3), ([0, 0, 1, 1], NAN)]
)
def test_it_needs_two_of_each_kind_and_scores_of_both_models(labels, third):
    labels, scores = np.array(labels, float), np.array([1.0, 2, third, 4])
    assert delong_test(labels, scores, np.arange(4.0)) is None
    assert delong_test(labels, np.arange(4.0), scores) is None
