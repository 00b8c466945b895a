import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cxr_study.evaluation.calibration import Bin, calibration_error, reliability

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


class TestReliability:
    @given(drawn(), st.integers(1, 12))
    def test_bins_are_those_of_a_loop_over_predictions(self, given, number):
        members, _ = naive(*given, number)
        bins = reliability(*given, number)
        assert len(bins) == number
        for found, expected in zip(bins, members, strict=True):
            assert found.predictions == len(expected)
            if expected:
                observed, probability = np.mean(expected, axis=0)
                assert (found.observed, found.probability) == pytest.approx((observed, probability))
            else:
                assert (found.observed, found.probability) == (None, None)

    def test_bins_are_ten_of_equal_width(self):
        bins = reliability(np.array([1.0]), np.array([1.0]))
        assert [found.low for found in bins] == pytest.approx([i / 10 for i in range(10)])
        assert [found.high for found in bins] == pytest.approx([(i + 1) / 10 for i in range(10)])
        assert [found.predictions for found in bins] == [0] * 9 + [1]

    def test_classes_are_pooled(self):
        labels, probabilities = np.array([[0.0, 1], [NAN, 1]]), np.array([[0.1, 0.3], [0.2, 0.4]])
        (pooled,) = reliability(labels, probabilities, 1)
        assert (pooled.predictions, pooled.observed) == (3, pytest.approx(2 / 3))
        assert pooled.probability == pytest.approx(0.8 / 3)

    @pytest.mark.parametrize("label", [0.0, 1.0])
    def test_labels_that_are_all_alike_are_no_matter(self, label):
        (found,) = reliability(np.full(3, label), np.array([0.1, 0.2, 0.3]), 1)
        assert found.observed == label

    @pytest.mark.parametrize("wrong", [-0.1, 1.5, NAN])
    def test_what_is_no_probability_is_refused(self, wrong):
        labels, scores = np.array([1.0, 0, NAN]), np.array([0.5, wrong, 0.5])
        with pytest.raises(ValueError, match=f"between 0 and 1; got {wrong}"):
            reliability(labels, scores)


class TestCalibrationError:
    def test_every_bin_counts_by_its_predictions(self):
        bins = (Bin(0, 0.5, 3, 0.3, 0.5), Bin(0.5, 0.6, 0, None, None), Bin(0.6, 1, 1, 0.9, 0.5))
        assert calibration_error(bins) == pytest.approx((3 * 0.2 + 1 * 0.4) / 4)

    @given(drawn(), st.integers(1, 12))
    def test_it_is_that_of_a_loop_over_predictions(self, given, number):
        _, expected = naive(*given, number)
        found = calibration_error(reliability(*given, number))
        assert found == (None if expected is None else pytest.approx(expected, abs=1e-12))

    def test_it_is_not_defined_without_a_label(self):
        assert calibration_error(reliability(np.full(2, NAN), np.array([0.1, 0.2]))) is None
