import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import f1_score

from cxr_study.data.images.image_store import Images
from cxr_study.evaluation.calibration_error import calibration_error, reliability
from cxr_study.evaluation.predictions import Predictions
from cxr_study.models import fit_calibration
from cxr_study.models.calibration_file import CalibrationError
from cxr_study.models.fit_calibration import calibrate
from surgical_aggregation.checkpoints.checkpoint import Checkpoint

MODEL = Checkpoint({"head/Mass/kernel": np.ones(2)})


@pytest.fixture(autouse=True)
def few_resamples(monkeypatch):
    monkeypatch.setattr(fit_calibration, "_RESAMPLES", 50)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def site(images=4000, name="a", seed=0, slope=2.0, intercept=-1.0, mass=None, **more):
    """Images whose truth follows sigmoid(logit); the model says sigmoid(slope * logit + ...)."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(-1, 1.5, images)
    truth = (rng.random(images) < sigmoid(logits)).astype(float) if mass is None else mass
    probabilities = pd.DataFrame({"Mass": sigmoid(slope * logits + intercept).astype(np.float32)})
    table = pd.DataFrame({"Mass": truth, "patient": np.arange(images) // 2})
    nothing = np.zeros((images, 1))
    known = Images(table, nothing, nothing, name, frozenset(["Mass"]))
    return Predictions(known, probabilities.assign(**more), nothing)


FEW = (np.arange(60) < 8).astype(float)  # of four patients
REVERSED = 1 - site(images=400).images.table["Mass"]


def test_probabilities_that_are_too_sure_become_right():
    calibration = calibrate(MODEL, [site()])
    made = calibration.classes["Mass"]
    assert made.ece_before > 0.1 and made.ece_after < 0.03
    unseen = site(seed=1)
    probabilities = calibration.applied(unseen.probabilities)
    logits = (np.log(unseen.probabilities["Mass"] / (1 - unseen.probabilities["Mass"])) + 1) / 2
    assert np.abs(probabilities["Mass"] - sigmoid(logits)).mean() < 0.03
    inverse = [0.5, 0.5]  # of what the model did
    np.testing.assert_allclose([made.curve.slope, made.curve.intercept], inverse, atol=0.1)


def test_a_curve_has_the_maximum_likelihood_also_where_logits_differ_little():
    z = np.random.default_rng(0).normal(size=10_000)
    rare = (np.argsort(np.argsort(-z)) % 100 == 0) & (z > 0)  # 50 of them
    one = pd.DataFrame({"label": rare.astype(float), "probability": sigmoid(-5.3 + 0.1 * z)})
    smoothed = np.where(rare, 51 / 52, 1 / 9952)  # Platt's targets
    off = fit_calibration._fitted(one).apply(one["probability"].to_numpy()) - smoothed
    np.testing.assert_allclose([off.mean(), (off * z).mean()], 0, atol=1e-8)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("absent", [0.3, 0.7], ids=["separable", "equal"])
def test_a_curve_without_one_best_slope_is_fitted_without_a_warning(absent):
    label = np.repeat([1.0, 0.0], 30)
    one = pd.DataFrame({"label": label, "probability": np.where(label, 0.7, absent)})
    means = pd.Series(fit_calibration._fitted(one).apply(one["probability"].to_numpy()))
    expected = [31 / 32, 1 / 32] if absent < 0.7 else [0.5, 0.5]
    np.testing.assert_allclose(means.groupby(-label).mean(), expected, atol=1e-6)


def test_thresholds_reach_the_sensitivity_or_the_highest_f1():
    one = site()
    for sensitivity in (0.8, 0.95):
        made = calibrate(MODEL, [one], sensitivity=sensitivity)
        of = made.classes["Mass"]
        probabilities = of.curve.apply(one.probabilities["Mass"].to_numpy(float))
        positive, truth = probabilities >= of.threshold, one.images.table["Mass"] == 1
        assert sensitivity <= positive[truth].mean() < sensitivity + 0.01
        assert of.sensitivity == positive[truth].mean()
        assert of.specificity == (~positive[~truth]).mean()
        assert made.threshold_rule == f"sensitivity {sensitivity}" and made.target == sensitivity
        assert (made.applied(one.probabilities)["Mass positive"] == positive).mean() > 0.999
    made = calibrate(MODEL, [one])
    of = made.classes["Mass"]
    assert made.threshold_rule == "f1" and made.target is None
    at = [of.threshold, *np.linspace(0.05, 0.9, 50)]
    best, *others = [f1_score(truth, probabilities >= threshold) for threshold in at]
    assert best >= max(others) - 1e-9


def test_classes_with_too_few_images_are_refused_and_all_of_them_is_an_error():
    assert calibrate(MODEL, [site(Hernia=0.5)]).refused == {"Hernia": "no image has a label of it"}
    with pytest.raises(CalibrationError, match="there are 8 and 52"):
        calibrate(MODEL, [site(images=60, mass=FEW)])
    one_patient = site()
    one_patient.images.table["patient"] = 1
    with pytest.raises(CalibrationError, match="each of at least 5 patients"):
        calibrate(MODEL, [one_patient])


def test_a_class_that_would_be_turned_round_is_refused_with_its_auroc():
    twice = site(images=400, Nodule=site(images=400).probabilities["Mass"])
    twice.images.table["Nodule"] = REVERSED
    made = calibrate(MODEL, [twice])
    assert list(made.classes) == ["Mass"]
    assert re.search(r"slope -0\.\d\d, AUROC 0\.[12]\d\d\. Are", made.refused["Nodule"])


@pytest.mark.parametrize("output", [0.3, 0.7])
def test_a_class_of_which_the_model_says_the_same_of_every_image_is_refused(output):
    one = site(images=400, Nodule=output)
    one.images.table["Nodule"] = one.images.table["Mass"]
    assert calibrate(MODEL, [one]).refused == {
        "Nodule": "probabilities that differ between images are needed; all are equal"
    }


@pytest.mark.parametrize(("labels", "message"), [
    ({"Mass": REVERSED}, r"alone: Mass: probabilities that rise"),
    ({"mass": [1.0] * 400}, "the sites label mass, the model has Hernia and Mass"),
])  # fmt: skip
def test_a_refusal_names_the_classes_that_the_sites_label(labels, message):
    one = site(images=400)
    probabilities = one.probabilities.assign(Hernia=0.5)[["Hernia", "Mass"]]
    table = pd.DataFrame(labels).assign(patient=one.images.table["patient"])
    images = replace(one.images, table=table, labelled=frozenset(labels))
    one = replace(one, probabilities=probabilities, images=images)
    with pytest.raises(CalibrationError, match=message) as refused:
        calibrate(MODEL, [one])
    assert "Hernia:" not in str(refused.value)


def test_thresholds_have_intervals_and_are_tested_on_images_that_they_were_not_chosen_on():
    one, other = site(), site(seed=1, intercept=0.0)  # a model that says more of others
    of = calibrate(MODEL, [one], [other], sensitivity=0.9).classes["Mass"]
    low, high = of.threshold_ends
    assert low < of.threshold < high < low + 0.1
    positive = of.curve.apply(other.probabilities["Mass"].to_numpy(float)) >= of.threshold
    truth = other.images.table["Mass"] == 1
    shares = of.test_sensitivity, of.test_specificity, of.test_ppv
    rights = positive[truth], ~positive[~truth], truth[positive]
    for (value, low, high), right in zip(shares, rights, strict=True):
        assert value == right.mean() and value - 0.05 < low < value < high < value + 0.05
    assert of.by_site["a"].sensitivity == of.test_sensitivity
    of = calibrate(MODEL, [one], [site(images=60, seed=2, mass=FEW)]).classes["Mass"]
    assert of.test_sensitivity[1:] == (None, None) and None not in of.test_specificity
    untested = calibrate(MODEL, [one]).classes["Mass"]
    assert untested.test_sensitivity == untested.test_ppv == (None, None, None)


def test_a_share_of_all_or_none_has_the_exact_interval_of_its_patients():
    one, sure = site(600), site(images=60, mass=np.repeat([1.0, 0.0], 30))
    sure.probabilities["Mass"] = np.repeat([0.999, 0.001], 30)
    of = calibrate(MODEL, [one], [sure]).classes["Mass"]
    low = 0.025 ** (1 / 15)  # 15 patients of two images each
    for share in (of.test_sensitivity, of.test_specificity, of.test_ppv):
        assert share == (1.0, pytest.approx(low), 1.0)
    wrong = replace(sure, probabilities=1 - sure.probabilities)
    of = calibrate(MODEL, [one], [wrong]).classes["Mass"]
    assert of.test_sensitivity == (0.0, 0.0, pytest.approx(1 - low))


def test_each_site_has_what_its_own_test_images_show():
    one, rare = site(600), site(600, "b", seed=2)
    rare.images.table["Mass"] *= np.arange(600) % 3 == 0
    made = calibrate(MODEL, [one, rare], [site(600, seed=1), rare])
    a, b = (made.site_test("Mass", name) for name in "ab")
    alone = calibrate(MODEL, [one, rare], [rare])
    assert b == alone.site_test("Mass", "b") and alone.site_test("Mass", "a").ppv[0] is None
    assert b.ppv[0] < made.classes["Mass"].test_ppv[0] < a.ppv[0]
    assert b.ece is not None and a.ece != b.ece


def test_the_error_after_is_of_patients_that_were_not_seen():
    """What fits the images that it was fitted on is not taken for right on others."""
    noise = site(images=60, mass=np.random.default_rng(4).integers(0, 2, 60).astype(float))
    made = calibrate(MODEL, [noise]).classes["Mass"]
    curve = made.curve.apply(noise.probabilities["Mass"].to_numpy(float))
    by_heart = calibration_error(reliability(noise.images.table["Mass"].to_numpy(), curve))
    assert made.ece_after > by_heart + 0.01
