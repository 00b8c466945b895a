import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import log_loss, roc_auc_score

from surgical_aggregation.aggregation import metrics
from surgical_aggregation.aggregation.metrics import auroc, bce, counts, named, summary

NAN = np.nan


@given(st.integers(0, 2**32 - 1), st.integers(2, 60), st.integers(1, 5))
def test_both_metrics_are_scikit_learns_where_they_are_defined(seed, images, classes):
    """Of labels with gaps and scores with many ties."""
    rng = np.random.default_rng(seed)
    labels = rng.choice([0.0, 1.0, NAN], size=(images, classes), p=[0.5, 0.3, 0.2])
    scores = rng.integers(1, 10, size=labels.shape) / 10
    found = auroc(labels, scores), bce(labels, scores)
    for truth, score, area, loss in zip(labels.T, scores.T, *found, strict=True):
        score, truth = score[~np.isnan(truth)], truth[~np.isnan(truth)]
        both = len(set(truth)) == 2
        expected = roc_auc_score(truth, score) if both else NAN
        assert area == pytest.approx(expected, nan_ok=True)
        expected = log_loss(truth, score, labels=[0, 1]) if len(truth) else NAN
        assert loss == pytest.approx(expected, nan_ok=True)


def test_auroc_leaves_smoothed_labels_out_and_a_nan_score_makes_its_class_undefined():
    labels, scores = np.array([[1, 0, 0.7, NAN]]).T, np.array([[0.6, 0.4, 0.5, 0.5]]).T
    assert auroc(labels, scores) == 1
    assert auroc(labels, -scores) == 0
    labels = np.array([[0.0, 0], [1, 1], [0, 0]])
    scores = np.array([[0.1, 0.1], [0.9, 0.9], [NAN, 0.2]])
    np.testing.assert_equal(auroc(labels, scores), [NAN, 1])


def test_in_a_loss_nan_is_no_perfect_prediction_and_certain_and_wrong_is_finite():
    assert np.isnan(bce(np.array([[1.0], [0.0]]), np.array([[NAN], [0.1]]))).all()
    assert np.isfinite(bce(np.array([[1.0]]), np.array([[0.0]]))).all()


def test_named_means_are_over_the_classes_that_are_defined():
    labels = np.array([[1, 0, NAN], [0, 0, NAN], [1, 0, NAN]], float)
    scores = np.array([[0.9, 0.1, 0.5], [0.1, 0.1, 0.5], [0.8, 0.1, 0.5]])
    values = named(("Edema", "Mass", "Hernia"), labels, scores)
    assert values["auroc"] == values["auroc/Edema"] == 1
    assert not {"auroc/Mass", "bce/Hernia"} & values.keys()
    assert values["bce"] == pytest.approx((values["bce/Edema"] + values["bce/Mass"]) / 2)
    assert named(("Edema",), np.array([[NAN]]), np.array([[0.5]])) == {}
    assert summary({"bce/Mass": 1, "auroc": 0.75, "bce": 0.5}) == "bce 0.5000, auroc 0.7500"
    assert summary({"bce": 0.5}) == "bce 0.5000"


def test_counts_are_of_certain_labels():
    labels = np.array([[1, 0, NAN], [1, 0.7, NAN], [0, 0, NAN]])
    assert counts(("Edema", "Nodule/Mass", "Hernia"), labels) == {
        "images": 3,
        "positives/Edema": 2, "negatives/Edema": 1,
        "positives/Nodule/Mass": 0, "negatives/Nodule/Mass": 2,
        "positives/Hernia": 0, "negatives/Hernia": 0,
    }  # fmt: skip


@pytest.mark.parametrize(("positives", "negatives", "left"), [
    (9, 11, None), (10, 10, 0.8), (1, 999, 0.8), (10, 100, 0.77), (100, 100, 0.765),
    (1000, 1000, 0.765),
])  # fmt: skip
def test_an_auroc_has_at_most_a_tenth_of_what_its_counts_allow(positives, negatives, left):
    values = {"auroc": 0.7654321, "auroc/Edema": 0.7654321, "bce": 0.01234567}
    counted = {"positives/Edema": positives, "negatives/Edema": negatives}
    kept = {"auroc/Edema": left, "auroc": left} if left else {}
    reported = metrics.without_counts(values | counted)
    assert reported == metrics.without_counts(reported) == {"bce": 0.0123, **kept}


CLASSES = ("Edema", "Nodule/Mass")


@pytest.mark.parametrize("value", [0, 0.5, 1, np.float32(0.5)])
def test_numbers_by_known_names_pass_as_numbers_that_everything_can_write(value):
    names = [*metrics.REPORTED, "auroc/Edema", "bce/Nodule/Mass", "positives/Edema"]
    values = {n: round(value) if n.startswith(metrics.COUNTS) else value for n in names}
    assert metrics.fault(values, CLASSES) is None
    assert json.loads(json.dumps(metrics.numbers(values))) == values


def test_other_names_are_refused():
    unknown = ("f1", "bce/Mass", "auroc/", "images/Edema", "", 7, ("bce", 1), None, "x" * 10**6)
    for name in unknown:
        reason = metrics.fault({name: 0.5}, CLASSES)
        assert "no metric" in reason and len(reason) < 200
    assert metrics.fault({"bce/Edema": 0.5}, None) is None  # any printable name
    for name in ("bce/", "bce/Ede\nma", "f1/Edema", "bce/" + 201 * "x"):
        assert "no metric" in metrics.fault({name: 0.5}, None)
    assert "no metric" in metrics.fault({"bce/Edema": 0.5}, ())
    many = {f"bce/{number}": 0.5 for number in range(10_000)}
    assert "of 1000 classes at most; got 10000" in metrics.fault(many, None)
    for values in (None, [("bce", 0.5)], "bce"):
        assert "by name" in metrics.fault(values, CLASSES)


@pytest.mark.parametrize(("name", "value"), [
    *[("auroc", v) for v in ("0.5", None, True, [0.5], np.float32([0.5]), np.int64(1), 0.5j)],
    *[("auroc", v) for v in (math.nan, math.inf, -0.1, 1.1, 10**400)],
    *[("bce", v) for v in (math.inf, 10**400, -1, "x" * 10**6, 16.12, 1e300)],
])  # fmt: skip
def test_values_out_of_a_metrics_range_are_refused(name, value):
    reason = metrics.fault({name: value}, CLASSES)
    largest = {"auroc": 1, "bce": 16.1181}[name]
    assert f"'{name}' must be a number from 0 to {largest}; got" in reason and len(reason) < 200


@pytest.mark.parametrize("name", ["images", "positives/Edema", "negatives/Nodule/Mass"])
def test_a_count_is_whole_and_exact_as_a_float(name):
    assert all(metrics.fault({name: n}, CLASSES) is None for n in (0, 7.0, np.float32(7), 2**53))
    for value, range_ in ((3.5, "whole number"), (2**53 + 2, "number from 0 to 9.0072e+15")):
        reason = metrics.fault({name: value}, CLASSES)
        assert f"'{name}' must be a {range_}; got {value}" in reason
    assert "got a whole number of 16610 bits" in metrics.fault({name: 10**5000}, CLASSES)


def test_the_largest_loss_that_a_site_can_measure_may_be_reported():
    wrong = metrics.bce(np.float32([[1, 0]]), np.float32([[0, 1]]))
    assert all(metrics.fault({"bce": loss}, CLASSES) is None for loss in wrong)
    assert wrong.min() > metrics.LARGEST_BCE - 1e-5
