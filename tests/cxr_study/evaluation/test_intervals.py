import numpy as np
import pytest
from sklearn.metrics import average_precision_score

from cxr_study.evaluation.bootstrap import bootstrap_auroc
from cxr_study.evaluation.intervals import (
    Estimate,
    Spread,
    difference_interval,
    mean_interval,
    resample_model,
    spread,
)
from surgical_aggregation.aggregation.metrics import auroc

NAN = np.nan
CLASSES = ("Edema", "Mass", "Hernia")


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
    return resample_model(
        labels[:, columns], made[:, columns], classes, patients, seed=seed, resamples=resamples
    )


WEAK = scores(2, 0.8)
STRONG = scores(3, 0.3, WEAK)


class TestSpread:
    def test_it_is_the_mean_and_the_deviation_of_the_sample(self):
        assert spread([0.6, 0.8, 1.0]) == Spread(pytest.approx(0.8), pytest.approx(0.2), 3)

    def test_what_is_not_defined_is_left_out(self):
        assert spread([0.6, None, 0.8, NAN, 1.0]) == spread([0.6, 0.8, 1.0])
        assert spread([None, NAN]) is None
        assert spread([]) is None

    def test_one_value_has_no_deviation(self):
        assert spread([0.6]) == Spread(0.6, None, 1)


class TestResampleModel:
    def test_values_are_those_of_the_split_itself(self):
        labels, _ = split()
        found = model(WEAK)
        np.testing.assert_array_equal(found.values["auroc"], auroc(labels, WEAK))
        known = ~np.isnan(labels[:, 1])
        expected = average_precision_score(labels[known, 1], WEAK[known, 1])
        assert found.values["auprc"][1] == expected
        assert np.isnan(found.values["auprc"][2])

    def test_resamples_are_about_them(self):
        found = model(WEAK)
        for metric in ("auroc", "auprc"):
            drawn = found.drawn[metric]
            assert drawn.shape == (400, 3)
            np.testing.assert_allclose(drawn[:, :2].mean(0), found.values[metric][:2], atol=0.02)
            assert np.isnan(drawn[:, 2]).all()


class TestMeanInterval:
    def test_it_is_the_bootstraps_of_the_mean(self):
        labels, patients = split()
        ends = bootstrap_auroc(labels, WEAK, patients, seed=0, resamples=400)
        found = mean_interval(model(WEAK), "auroc", CLASSES)
        assert found == Estimate(auroc(labels, WEAK)[:2].mean(), ends.mean_low, ends.mean_high, 2)

    def test_each_metric_has_its_own(self):
        found = {m: mean_interval(model(WEAK), m, ["Edema"]) for m in ("auroc", "auprc")}
        values = {m: model(WEAK).values[m][0] for m in found}
        assert {m: estimate.value for m, estimate in found.items()} == values
        for estimate in found.values():
            assert estimate.low < estimate.value < estimate.high
        assert values["auroc"] != values["auprc"]

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
        found = resample_model(
            np.array([[1.0], [0]]),
            np.array([[2.0], [1]]),
            ["Mass"],
            ["p", "q"],
            seed=3,
            resamples=1,
        )
        assert np.isnan(found.drawn["auroc"]).all()
        assert mean_interval(found, "auroc", ["Mass"]) == Estimate(1, None, None, 1)


class TestDifferenceInterval:
    def test_it_is_of_the_differences_on_the_same_resamples(self):
        one, other = model(STRONG), model(WEAK)
        found = difference_interval(one, other, "auroc", CLASSES)
        means = [drawn.drawn["auroc"][:, :2].mean(axis=1) for drawn in (one, other)]
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

    def test_a_model_does_not_differ_from_itself(self):
        found = difference_interval(model(WEAK), model(WEAK), "auprc", CLASSES)
        assert (found.value, found.low, found.high) == (0, 0, 0)

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

    def test_models_on_other_patients_are_refused(self):
        labels, patients = split()
        other = resample_model(labels, WEAK, CLASSES, patients + 1, seed=0, resamples=400)
        with pytest.raises(ValueError, match="Resample both models alike"):
            difference_interval(model(STRONG), other, "auroc", CLASSES)
