import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import log_loss, roc_auc_score

from surgical_aggregation.aggregation import metrics
from surgical_aggregation.aggregation.metrics import auroc, bce, counts, disclosed, named, summary

NAN = np.nan


@st.composite
def labels_and_scores(draw):
    """Labels with gaps, and scores with many ties."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    shape = (draw(st.integers(2, 60)), draw(st.integers(1, 5)))
    labels = rng.choice([0.0, 1.0, NAN], size=shape, p=[0.5, 0.3, 0.2])
    return labels, rng.integers(1, 10, size=shape) / 10


class TestAuroc:
    @given(labels_and_scores())
    def test_is_scikit_learns_where_defined_and_nan_elsewhere(self, drawn):
        labels, scores = drawn
        for column, value in enumerate(auroc(labels, scores)):
            known = ~np.isnan(labels[:, column])
            truth = labels[known, column]
            if len(set(truth)) == 2:
                assert value == pytest.approx(roc_auc_score(truth, scores[known, column]))
            else:
                assert np.isnan(value)

    def test_a_smoothed_label_is_left_out_and_a_nan_score_makes_its_class_undefined(self):
        labels, scores = np.array([[1, 0, 0.7, NAN]]).T, np.array([[0.6, 0.4, 0.5, 0.5]]).T
        assert auroc(labels, scores) == 1
        assert auroc(labels, -scores) == 0
        labels = np.array([[0.0, 0], [1, 1], [0, 0]])
        scores = np.array([[0.1, 0.1], [0.9, 0.9], [NAN, 0.2]])
        np.testing.assert_equal(auroc(labels, scores), [NAN, 1])


class TestBce:
    @given(labels_and_scores())
    def test_is_scikit_learns_log_loss_over_labelled_images(self, drawn):
        labels, scores = drawn
        for column, value in enumerate(bce(labels, scores)):
            known = ~np.isnan(labels[:, column])
            if known.any():
                expected = log_loss(labels[known, column], scores[known, column], labels=[0, 1])
                assert value == pytest.approx(expected)
            else:
                assert np.isnan(value)

    def test_nan_is_no_perfect_prediction_and_certain_and_wrong_is_finite(self):
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


def test_counts_are_of_certain_labels():
    labels = np.array([[1, 0, NAN], [1, 0.7, NAN], [0, 0, NAN]])
    assert counts(("Edema", "Nodule/Mass", "Hernia"), labels) == {
        "images": 3,
        "positives/Edema": 2, "negatives/Edema": 1,
        "positives/Nodule/Mass": 0, "negatives/Nodule/Mass": 2,
        "positives/Hernia": 0, "negatives/Hernia": 0,
    }  # fmt: skip


VALUES = {
    "bce": 1.0, "bce/Mass": 2.0, "bce/Nodule/Mass": 3.0, "auroc/Mass": 4.0, "images": 5.0,
    "positives/Mass": 6.0, "negatives/Nodule/Mass": 7.0, "images_per_second": 8.0,
}  # fmt: skip


@pytest.mark.parametrize(
    ("withheld", "with_counts", "missing"),
    [
        ((), True, set()),
        ((), False, {"images", "positives/Mass", "negatives/Nodule/Mass"}),
        ({"Mass"}, True, {"bce/Mass", "auroc/Mass", "positives/Mass"}),
    ],
)
def test_withheld_classes_and_counts_are_not_disclosed(withheld, with_counts, missing):
    kept = disclosed(VALUES, withheld, with_counts=with_counts)
    assert kept == {name: value for name, value in VALUES.items() if name not in missing}


def test_summary_has_the_means_that_there_are():
    assert summary({"bce/Mass": 1, "auroc": 0.75, "bce": 0.5}) == "bce 0.5000, auroc 0.7500"
    assert summary({"bce": 0.5}) == "bce 0.5000"


class TestFault:
    CLASSES = ("Edema", "Nodule/Mass")

    @pytest.mark.parametrize("value", [0, 0.5, 1, np.float32(0.5)])
    def test_numbers_by_known_names_pass_as_numbers_that_everything_can_write(self, value):
        names = [*metrics.REPORTED, "auroc/Edema", "bce/Nodule/Mass", "positives/Edema"]
        values = dict.fromkeys(names, value)
        assert metrics.fault(values, self.CLASSES) is None
        assert json.loads(json.dumps(metrics.numbers(values))) == values

    @pytest.mark.parametrize(
        "name",
        ["f1", "bce/Mass", "auroc/", "images/Edema", "train_loss/Edema", "", 7, ("bce", 1), None],
    )
    def test_other_names_are_refused(self, name):
        assert "no metric" in metrics.fault({name: 0.5}, self.CLASSES)

    def test_where_no_classes_are_declared_their_names_are_text(self):
        assert metrics.fault({"bce/Edema": 0.5}, None) is None
        for name in ("bce/", "bce/Ede\nma", "f1/Edema", "bce/" + 201 * "x"):
            assert "no metric" in metrics.fault({name: 0.5}, None)
        assert "no metric" in metrics.fault({"bce/Edema": 0.5}, ())

    def test_there_are_no_more_than_a_site_may_have(self):
        many = {f"bce/{number}": 0.5 for number in range(10_000)}
        assert "of 1000 classes at most; got 10000" in metrics.fault(many, None)

    @pytest.mark.parametrize(
        "value",
        [
            "0.5", None, True, [0.5], np.float32([0.5]), np.int64(1), 0.5j, math.nan, math.inf,
            -0.1, 1.1, 10**400,
        ],
    )  # fmt: skip
    def test_values_that_no_auroc_has_are_refused(self, value):
        assert "from 0 to 1; got" in metrics.fault({"auroc": value}, self.CLASSES)

    @pytest.mark.parametrize("value", [math.inf, 10**400, -1])
    def test_losses_are_finite_and_at_least_0(self, value):
        assert "'bce' must be a number from 0 to inf" in metrics.fault({"bce": value}, self.CLASSES)

    @pytest.mark.parametrize("values", [None, [("bce", 0.5)], "bce"])
    def test_what_is_no_mapping_is_refused(self, values):
        assert "by name" in metrics.fault(values, self.CLASSES)

    @pytest.mark.parametrize("values", [{"x" * 10**6: 0.5}, {"bce": "x" * 10**6}])
    def test_the_reason_stays_short(self, values):
        assert len(metrics.fault(values, self.CLASSES)) < 200
