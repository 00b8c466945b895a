import numpy as np
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score

from cxr_study.evaluation import resampling
from cxr_study.evaluation.resampling import resample

NAN = np.nan


def column(*values):
    return np.array(values, dtype=float)[:, None]


def sample(images=120):
    """Labels with gaps and scores with ties, several images per patient."""
    rng = np.random.default_rng(1)
    labels = (rng.random((images, 3)) < (0.3, 0.7, 0.02)).astype(float)
    labels[::7, 1] = NAN
    scores = np.round(rng.random((images, 3)) + 0.3 * (labels == 1), 1)
    return labels, scores, rng.integers(0, 40, images)


class TestResample:
    def test_areas_are_scikit_learns_with_images_as_often_as_their_patient_was_drawn(self):
        labels, scores, patients = sample()
        names, patient = np.unique(patients, return_inverse=True)
        drawn = np.random.default_rng(5).multinomial(
            len(names), np.full(len(names), 1 / len(names)), size=30
        )
        got = resample(labels, scores, patients, resamples=30, seed=5)
        defined = 0
        for r, times in enumerate(drawn[:, patient]):
            for c in range(3):
                used = ~np.isnan(labels[:, c]) & (times > 0)
                truth, weights = labels[used, c], times[used]
                if len(set(truth)) == 2:
                    expected = [
                        area(truth, scores[used, c], sample_weight=weights)
                        for area in (roc_auc_score, average_precision_score)
                    ]
                    defined += 1
                else:
                    expected = [NAN, NAN]
                np.testing.assert_allclose([got.auroc[r, c], got.auprc[r, c]], expected, rtol=1e-12)
        assert 60 < defined < 90  # the rare class is missing from some

    def test_patients_are_drawn_with_all_their_images(self):
        # With either patient twice, one class is missing; with both, the areas are those of all.
        labels, scores = column(1, 1, 0, 0), column(0.9, 0.4, 0.6, 0.2)
        got = resample(labels, scores, ["p", "p", "q", "q"], resamples=50, seed=0)
        whole = ~np.isnan(got.auroc)
        assert 0 < whole.sum() < 50
        assert set(got.auroc[whole]) == {0.75}
        np.testing.assert_allclose(got.auprc[whole], 0.5 * 1 + 0.5 * 2 / 3)

    def test_a_class_that_every_image_has_or_none_or_no_label_is_defined_nowhere(self):
        labels = np.array([[1, 0, NAN], [1, 0, NAN]])
        got = resample(labels, np.ones((2, 3)), ["p", "q"], resamples=5, seed=0)
        assert np.isnan(got.auroc).all() and np.isnan(got.auprc).all()

    def test_resamples_depend_on_patients_and_seed_not_on_labels_or_scores(self):
        labels, scores, patients = sample()
        both = np.column_stack([labels, labels]), np.column_stack([scores, scores[:, ::-1]])
        together = resample(*both, patients, resamples=20, seed=3)
        alone = resample(labels, scores, patients, resamples=20, seed=3)
        other = resample(labels, scores, patients, resamples=20, seed=4)
        np.testing.assert_array_equal(together.auroc[:, :3], alone.auroc)
        np.testing.assert_array_equal(together.auprc[:, :3], alone.auprc)
        assert (alone.auroc[:, 0] != other.auroc[:, 0]).any()

    def test_how_many_are_held_at_a_time_changes_nothing(self, monkeypatch):
        whole = resample(*sample(), resamples=20, seed=3)
        monkeypatch.setattr(resampling, "_CHUNK", 7 * 120)
        np.testing.assert_array_equal(whole, resample(*sample(), resamples=20, seed=3))

    def test_patients_of_another_number_are_refused(self):
        with pytest.raises(ValueError, match="one entry per image, 2; got 1"):
            resample(column(0, 1), column(0, 1), ["p"], seed=0)

    @pytest.mark.parametrize(
        ("labels", "scores", "message"),
        [
            (column(0, -1), column(0, 1), "need to be 0, 1 or NaN"),
            (column(0, 1), column(0, NAN), "1 are not"),
            (column(0, 1), column(0, 1, 2), r"got \(2, 1\) and \(3, 1\)"),
            ([0, 1], [0, 1], r"need one shape \(images, classes\)"),
        ],
    )
    def test_what_cannot_be_scored_is_refused(self, labels, scores, message):
        with pytest.raises(ValueError, match=message):
            resample(labels, scores, ["p", "q"], seed=0)
