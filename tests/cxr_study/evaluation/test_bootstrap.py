import numpy as np
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score

from cxr_study.evaluation import bootstrap
from cxr_study.evaluation.bootstrap import (
    Estimate,
    class_ends,
    difference_interval,
    mean_interval,
    percentile_ends,
    resample,
)
from surgical_aggregation.aggregation.metrics import auroc

NAN = np.nan
CLASSES = ("Edema", "Mass", "Hernia")


def column(*values):
    return np.array(values, dtype=float)[:, None]


def drawn(labels, scores, patients, **how):
    """Resample a model of as many classes as there are columns."""
    names = [str(c) for c in range(np.shape(scores)[-1])]
    return resample(labels, scores, names, patients, **how)


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
        times_drawn = np.random.default_rng(5).multinomial(
            len(names), np.full(len(names), 1 / len(names)), size=30
        )
        got = drawn(labels, scores, patients, resamples=30, seed=5)
        defined = 0
        for r, times in enumerate(times_drawn[:, patient]):
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
                np.testing.assert_allclose(
                    [got.drawn["auroc"][r, c], got.drawn["auprc"][r, c]], expected, rtol=1e-12
                )
        assert 60 < defined < 90  # the rare class is missing from some

    def test_patients_are_drawn_with_all_their_images(self):
        # With either patient twice, one class is missing; with both, the areas are those of all.
        labels, scores = column(1, 1, 0, 0), column(0.9, 0.4, 0.6, 0.2)
        got = drawn(labels, scores, ["p", "p", "q", "q"], resamples=50, seed=0)
        whole = ~np.isnan(got.drawn["auroc"])
        assert 0 < whole.sum() < 50
        assert set(got.drawn["auroc"][whole]) == {0.75}
        np.testing.assert_allclose(got.drawn["auprc"][whole], 0.5 * 1 + 0.5 * 2 / 3)

    def test_a_class_that_every_image_has_or_none_or_no_label_is_defined_nowhere(self):
        labels = np.array([[1, 0, NAN], [1, 0, NAN]])
        got = drawn(labels, np.ones((2, 3)), ["p", "q"], resamples=5, seed=0)
        assert np.isnan(got.drawn["auroc"]).all() and np.isnan(got.drawn["auprc"]).all()

    def test_resamples_depend_on_patients_and_seed_not_on_labels_or_scores(self):
        labels, scores, patients = sample()
        both = np.column_stack([labels, labels]), np.column_stack([scores, scores[:, ::-1]])
        together = drawn(*both, patients, resamples=20, seed=3)
        alone = drawn(labels, scores, patients, resamples=20, seed=3)
        other = drawn(labels, scores, patients, resamples=20, seed=4)
        np.testing.assert_array_equal(together.drawn["auroc"][:, :3], alone.drawn["auroc"])
        np.testing.assert_array_equal(together.drawn["auprc"][:, :3], alone.drawn["auprc"])
        assert (alone.drawn["auroc"][:, 0] != other.drawn["auroc"][:, 0]).any()

    def test_how_many_are_held_at_a_time_changes_nothing(self, monkeypatch):
        whole = drawn(*sample(), resamples=20, seed=3)
        monkeypatch.setattr(bootstrap, "_CHUNK", 7 * 120)
        again = drawn(*sample(), resamples=20, seed=3)
        np.testing.assert_array_equal(whole.drawn["auroc"], again.drawn["auroc"])

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
            drawn(labels, scores, ["p", "q"], seed=0)
        with pytest.raises(ValueError, match="one entry per image, 2; got 1"):
            drawn(column(0, 1), column(0, 1), ["p"], seed=0)


def ends(labels, scores, patients, **how):
    """Ends of each class, (classes, 2), and of the mean over the classes that are defined."""
    found = drawn(labels, scores, patients, **how)
    mean = mean_interval(found, "auroc", found.classes)
    return np.array(class_ends(found, "auroc")), (mean.low, mean.high)


class TestIntervals:
    def test_is_the_spread_of_auroc_over_resampled_patients(self):
        labels, scores, patients = sample()
        labels, scores = labels[:, :2], scores[:, :2]
        names = np.unique(patients)
        rng = np.random.default_rng(2)
        values = []
        for _ in range(1000):
            chosen = rng.choice(names, len(names))
            rows = np.concatenate([np.flatnonzero(patients == name) for name in chosen])
            values.append(auroc(labels[rows], scores[rows]))
        low, high = np.percentile(values, [2.5, 97.5], axis=0)
        mean_low, mean_high = np.percentile(np.mean(values, axis=1), [2.5, 97.5])
        by_class, mean = ends(labels, scores, patients, seed=0)
        np.testing.assert_allclose(by_class.T, [low, high], atol=0.02)
        assert mean == pytest.approx((mean_low, mean_high), abs=0.02)

    def test_one_patient_has_no_spread(self):
        labels, scores = column(0, 1, 1), column(0.5, 0.5, 0.9)
        by_class, _ = ends(labels, scores, ["p", "p", "p"], seed=0, resamples=20)
        np.testing.assert_array_equal(by_class, [[0.75, 0.75]])

    def test_a_class_too_rare_for_most_resamples_has_no_interval(self):
        # Its only positive patient is missing from about a third of the resamples.
        labels = np.column_stack([np.arange(20) % 2, np.arange(20) == 0]).astype(float)
        scores = np.tile(np.arange(20.0)[:, None], 2)
        by_class, _ = ends(labels, scores, np.arange(20), seed=0)
        assert np.isnan(by_class[1]).all() and not np.isnan(by_class[0]).any()

    def test_the_interval_of_the_mean_is_about_the_mean_of_rare_classes_too(self):
        labels = np.column_stack([np.arange(20) % 2, np.arange(20) == 0]).astype(float)
        scores = np.column_stack([np.arange(20) % 2, np.arange(20)]).astype(float)  # 1 and 0
        assert ends(labels, scores, np.arange(20), seed=0)[1] == (0.5, 1.0)


class TestPercentileEnds:
    def test_leave_as_much_out_at_either_end(self):
        assert percentile_ends(range(101)) == pytest.approx((2.5, 97.5))

    def test_are_of_the_resamples_that_define_the_value(self):
        assert percentile_ends([NAN, *range(101), NAN]) == percentile_ends(range(101))
        assert np.isnan(percentile_ends([NAN])).all()


def split(images=300):
    """Labels, in which nobody has a hernia, and patients."""
    rng = np.random.default_rng(1)
    labels = (rng.random((images, 3)) < (0.3, 0.2, 0)).astype(float)
    labels[::7, 1] = NAN
    return labels, rng.integers(0, 90, images)


def scores(seed, gain, base=None):
    """Of a model; those of one that is built on a base are much like it."""
    labels, _ = split()
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=labels.shape)
    return (noise if base is None else base + 0.3 * noise) + gain * (labels == 1)


def model(made, seed=0, resamples=400, classes=CLASSES):
    labels, patients = split()
    columns = [CLASSES.index(name) for name in classes]
    return resample(
        labels[:, columns], made[:, columns], classes, patients, seed=seed, resamples=resamples
    )


WEAK = scores(2, 0.8)
STRONG = scores(3, 0.3, WEAK)


class TestMeanInterval:
    def test_each_metric_has_its_own_about_the_value_on_the_split_itself(self):
        labels, _ = split()
        found = model(WEAK)
        np.testing.assert_array_equal(found.values["auroc"], auroc(labels, WEAK))
        known = ~np.isnan(labels[:, 1])
        expected = average_precision_score(labels[known, 1], WEAK[known, 1])
        assert found.values["auprc"][1] == expected and np.isnan(found.values["auprc"][2])
        for metric in ("auroc", "auprc"):
            estimate = mean_interval(found, metric, ["Edema"])
            assert estimate.value == found.values[metric][0]
            assert estimate.low < estimate.value < estimate.high

    def test_classes_are_found_by_name(self):
        both = mean_interval(model(WEAK), "auroc", ["Mass", "Edema"])
        assert both == mean_interval(
            model(WEAK, classes=("Mass", "Edema")), "auroc", ["Edema", "Mass"]
        )
        alone = mean_interval(model(WEAK, classes=("Hernia", "Mass")), "auroc", ["Mass"])
        assert alone == mean_interval(model(WEAK), "auroc", ["Mass"])
        assert alone != both

    def test_it_is_not_defined_where_the_model_lacks_a_class_or_the_split_has_none(self):
        lacking = model(WEAK, classes=("Edema", "Hernia"))
        assert mean_interval(lacking, "auroc", ["Edema", "Mass"]) is None
        assert mean_interval(lacking, "auroc", ["Hernia"]) is None

    def test_it_has_no_ends_where_no_resample_defines_it(self):
        found = resample(column(1, 0), column(2, 1), ["Mass"], ["p", "q"], seed=3, resamples=1)
        assert np.isnan(found.drawn["auroc"]).all()
        assert mean_interval(found, "auroc", ["Mass"]) == Estimate(1, None, None, 1)


class TestDifferenceInterval:
    def test_it_is_of_the_differences_on_the_same_resamples(self):
        one, other = model(STRONG), model(WEAK)
        found = difference_interval(one, other, "auroc", CLASSES)
        means = [each.drawn["auroc"][:, :2].mean(axis=1) for each in (one, other)]
        low, high = np.percentile(means[0] - means[1], [2.5, 97.5])
        assert (found.low, found.high) == (pytest.approx(low), pytest.approx(high))
        values = [mean_interval(each, "auroc", CLASSES).value for each in (one, other)]
        assert found.value == pytest.approx(values[0] - values[1])
        assert found.classes == 2

    def test_pairing_makes_it_narrower_than_the_two_intervals(self):
        one, other = model(STRONG), model(WEAK)
        found = difference_interval(one, other, "auroc", CLASSES)
        alone = mean_interval(other, "auroc", CLASSES)
        assert found.high - found.low < 0.7 * (alone.high - alone.low)

    def test_models_need_not_have_their_classes_in_one_order(self):
        reordered = model(STRONG, classes=("Mass", "Edema"))
        found = difference_interval(reordered, model(WEAK), "auroc", ["Edema"])
        assert found == difference_interval(model(STRONG), model(WEAK), "auroc", ["Edema"])

    def test_it_is_not_defined_where_either_lacks_a_class(self):
        lacking, whole = model(WEAK, classes=("Edema",)), model(STRONG)
        assert difference_interval(lacking, whole, "auroc", ["Edema", "Mass"]) is None
        assert difference_interval(whole, lacking, "auroc", ["Edema", "Mass"]) is None
        assert difference_interval(whole, whole, "auroc", ["Hernia"]) is None

    @pytest.mark.parametrize("changed", [{"seed": 1}, {"resamples": 300}])
    def test_models_that_were_not_resampled_alike_are_refused(self, changed):
        with pytest.raises(ValueError, match="need the same patients, seed and number"):
            difference_interval(model(STRONG), model(WEAK, **changed), "auroc", CLASSES)
        labels, patients = split()
        other = resample(labels, WEAK, CLASSES, patients + 1, seed=0, resamples=400)
        with pytest.raises(ValueError, match="Resample both models alike"):
            difference_interval(model(STRONG), other, "auroc", CLASSES)
