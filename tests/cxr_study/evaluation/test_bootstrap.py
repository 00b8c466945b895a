import numpy as np
import pytest

from cxr_study.evaluation.bootstrap import bootstrap_auroc, mean_defined, percentile_ends
from surgical_aggregation.aggregation.metrics import auroc

NAN = np.nan


def column(*values):
    return np.array(values, dtype=float)[:, None]


def test_the_mean_is_over_the_classes_that_are_defined():
    assert mean_defined([0.5, NAN, 1.0]) == 0.75
    assert np.isnan(mean_defined([NAN, NAN]))


class TestBootstrap:
    def sample(self):
        rng = np.random.default_rng(1)
        patients = rng.integers(0, 40, 120)
        labels = (rng.random((120, 2)) < 0.3).astype(float)
        labels[::7, 1] = NAN
        return labels, np.round(rng.random((120, 2)) + 0.3 * (labels == 1), 1), patients

    def test_is_the_spread_of_auroc_over_resampled_patients(self):
        labels, scores, patients = self.sample()
        names = np.unique(patients)
        rng = np.random.default_rng(2)
        values = []
        for _ in range(1000):
            drawn = rng.choice(names, len(names))
            rows = np.concatenate([np.flatnonzero(patients == name) for name in drawn])
            values.append(auroc(labels[rows], scores[rows]))
        low, high = np.percentile(values, [2.5, 97.5], axis=0)
        mean_low, mean_high = np.percentile(np.mean(values, axis=1), [2.5, 97.5])
        interval = bootstrap_auroc(labels, scores, patients, seed=0)
        np.testing.assert_allclose(interval.low, low, atol=0.02)
        np.testing.assert_allclose(interval.high, high, atol=0.02)
        assert interval.mean_low == pytest.approx(mean_low, abs=0.02)
        assert interval.mean_high == pytest.approx(mean_high, abs=0.02)

    def test_one_patient_has_no_spread(self):
        labels, scores = column(0, 1, 1), column(0.5, 0.5, 0.9)
        interval = bootstrap_auroc(labels, scores, ["p", "p", "p"], seed=0, resamples=20)
        assert (interval.low, interval.high) == ([0.75], [0.75])

    def test_a_narrower_level_gives_a_narrower_interval(self):
        wide = bootstrap_auroc(*self.sample(), seed=0)
        narrow = bootstrap_auroc(*self.sample(), seed=0, level=0.5)
        assert (wide.low < narrow.low).all() and (narrow.high < wide.high).all()
        assert wide.mean_low < narrow.mean_low < narrow.mean_high < wide.mean_high

    def test_it_is_of_as_many_resamples_as_asked_for(self):
        one = bootstrap_auroc(*self.sample(), seed=0, resamples=1)
        assert (one.low == one.high).all() and one.mean_low == one.mean_high

    def test_the_seed_decides(self):
        np.testing.assert_equal(
            bootstrap_auroc(*self.sample(), seed=5), bootstrap_auroc(*self.sample(), seed=5)
        )
        assert (
            bootstrap_auroc(*self.sample(), seed=5).mean_low
            != bootstrap_auroc(*self.sample(), seed=6).mean_low
        )

    def test_a_class_too_rare_for_most_resamples_has_no_interval(self):
        # Its only positive patient is missing from about a third of the resamples.
        labels = np.column_stack([np.arange(20) % 2, np.arange(20) == 0]).astype(float)
        scores = np.tile(np.arange(20.0)[:, None], 2)
        interval = bootstrap_auroc(labels, scores, np.arange(20), seed=0)
        assert np.isnan([interval.low[1], interval.high[1]]).all()

    def test_the_interval_of_the_mean_is_about_the_mean_of_rare_classes_too(self):
        labels = np.column_stack([np.arange(20) % 2, np.arange(20) == 0]).astype(float)
        scores = np.column_stack([np.arange(20) % 2, np.arange(20)]).astype(float)  # 1 and 0
        interval = bootstrap_auroc(labels, scores, np.arange(20), seed=0)
        assert (interval.mean_low, interval.mean_high) == (0.5, 1.0)


class TestPercentileEnds:
    def test_leave_as_much_out_at_either_end(self):
        assert percentile_ends(range(101)) == pytest.approx((2.5, 97.5))
        assert percentile_ends(range(101), level=0.5) == (25, 75)

    def test_are_of_the_resamples_that_define_the_value(self):
        assert percentile_ends([NAN, *range(101), NAN]) == percentile_ends(range(101))
        assert np.isnan(percentile_ends([NAN])).all()
