from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cxr_study.evaluation.calibration_error import calibration_error, reliability

NAN = np.nan


@st.composite
def drawn(draw):
    """Labels with gaps, and probabilities of which some are on the edges of bins."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    shape = (draw(st.integers(0, 60)), draw(st.integers(1, 4)))
    labels = rng.choice([0.0, 1.0, NAN], size=shape, p=[0.5, 0.3, 0.2])
    return labels, rng.choice([*rng.random(30), *np.linspace(0, 1, 11)], size=shape)


def naive(labels, probabilities, number):
    """Bins and their error, prediction by prediction."""
    edges = np.linspace(0, 1, number + 1)
    members = [[] for _ in range(number)]
    for label, probability in zip(labels.ravel(), probabilities.ravel(), strict=True):
        if not np.isnan(label):
            at = 0
            while at < number - 1 and probability > edges[at + 1]:
                at += 1
            members[at].append((label, probability))
    total = sum(map(len, members))
    off = [abs(sum(y for y, _ in each) - sum(p for _, p in each)) for each in members]
    return members, sum(off) / total if total else None


@given(drawn(), st.integers(1, 12))
def test_bins_and_their_error_are_those_of_a_loop_over_predictions(given, number):
    members, error = naive(*given, number)
    bins = reliability(*given, number)
    assert calibration_error(bins) == (None if error is None else pytest.approx(error, abs=1e-12))
    edges = np.linspace(0, 1, number + 1)
    assert [(each.low, each.high) for each in bins] == list(pairwise(edges))
    for found, expected in zip(bins, members, strict=True):
        assert found.predictions == len(expected)
        means = pytest.approx(tuple(np.mean(expected, axis=0))) if expected else (None, None)
        assert (found.observed, found.probability) == means


def test_there_are_ten_bins():
    bins = reliability(np.array([1.0]), np.array([1.0]))
    assert [found.predictions for found in bins] == [0] * 9 + [1]


@pytest.mark.parametrize("wrong", [-0.1, 1.5, NAN])
def test_values_that_are_no_probabilities_are_refused(wrong):
    with pytest.raises(ValueError, match=f"between 0 and 1; got {wrong}"):
        reliability(np.array([1.0, 0, NAN]), np.array([0.5, wrong, 0.5]))
