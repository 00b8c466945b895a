from functools import partial

import numpy as np
import pandas as pd
import pytest

from cxr_study.common.errors import InputError
from cxr_study.data.images.image_store import Images
from cxr_study.evaluation.bootstrap import resample
from cxr_study.evaluation.predictions import Predictions
from cxr_study.evaluation.scores import compare, score, score_calibration

UNION = ("Edema", "Fibrosis", "Hernia", "Mass")


@pytest.fixture(autouse=True)
def few_resamples(monkeypatch):
    monkeypatch.setattr("cxr_study.evaluation.scores.resample", partial(resample, resamples=50))


def split(labels, labelled=("Edema", "Mass"), patients=None):
    """What a test split of some labels makes of what a model says."""
    table = pd.DataFrame(np.array(labels, float), columns=UNION[: np.shape(labels)[1]])
    table["patient"] = np.arange(len(table)).astype(str) if patients is None else patients
    nothing = np.zeros((0, 2, 2), np.uint8), np.zeros(0, np.int64)
    images = Images(table, *nothing, "nih", frozenset(labelled))
    return lambda probabilities: Predictions(images, probabilities, nothing[1])


# Four images, each of ten patients. Edema: 3 of 4 pairs in order, 0.75; Fibrosis: no positives;
# Hernia: all in order, 1; Mass: one image has no label, and of two pairs one is in order, 0.5.
LABELS = 10 * [[1, 0, 1, 1], [0, 0, 0, 0], [1, 0, 0, 0], [0, 0, 0, np.nan]]
SCORES = pd.DataFrame({
    "Mass": 10 * [0.5, 0.6, 0.1, 0.9], "Edema": 10 * [0.9, 0.1, 0.3, 0.4],
    "Hernia": 10 * [0.9, 0.1, 0.2, 0.3], "Fibrosis": 10 * [0.1, 0.2, 0.3, 0.4],
})  # fmt: skip


def test_every_class_is_scored_by_its_own_column_whatever_the_order():
    rows, means = score("local", split(LABELS)(SCORES), UNION, seed=0)
    assert [(r.class_name, r.auroc, r.positives, r.negatives, r.labelled, r.labels)
            for r in rows] == [
        ("Edema", 0.75, 20, 20, True, "site"), ("Fibrosis", None, 0, 40, False, "truth"),
        ("Hernia", 1.0, 10, 30, False, "truth"), ("Mass", 0.5, 10, 20, True, "site"),
    ]  # fmt: skip
    assert (rows[1].low, rows[1].high) == (None, None)
    assert {(row.model, row.site) for row in (*rows, *means)} == {("local", "nih")}
    found = {mean.classes: (mean.auroc, mean.defined, mean.of) for mean in means}
    assert found == {"all": (0.75, 3, 4), "labelled": (0.625, 2, 2), "unlabelled": (1.0, 1, 2)}
    _, means = score("global", split(LABELS, labelled=UNION)(SCORES), UNION, seed=0)
    assert [mean.classes for mean in means] == ["all", "labelled"]


def test_an_empty_test_split_is_named():
    with pytest.raises(InputError, match=r"^nih: the test split needs images; there is none\."):
        score("global", split(np.zeros((0, 4)))(SCORES[:0]), UNION, seed=0)


def test_a_class_that_the_model_lacks_is_not_defined():
    rows, means = score("local", split(LABELS)(SCORES[["Edema", "Mass"]]), UNION, seed=0)
    assert [row.auroc for row in rows] == [0.75, None, None, 0.5] and rows[2].positives == 10
    (mean,) = [mean for mean in means if mean.classes == "unlabelled"]
    assert (mean.auroc, mean.low, mean.defined, mean.of) == (None, None, 0, 2)


def test_intervals_hold_the_value_and_resample_patients():
    rng = np.random.default_rng(0)
    labels = (np.arange(40) % 2)[:, None]
    scores = pd.DataFrame({"Edema": labels[:, 0] + rng.normal(size=40)})
    alone = score("global", split(labels)(scores), ("Edema",), seed=1)
    (row,), means = alone
    assert 0 < row.low < row.auroc < row.high <= 1
    assert (means[0].low, means[0].high) == (row.low, row.high)
    assert score("global", split(labels)(scores), ("Edema",), seed=1) == alone
    families = split(labels, patients=np.arange(40) // 10)
    (wide,), _ = score("global", families(scores), ("Edema",), seed=1)
    assert (wide.low, wide.high) != (row.low, row.high)


def test_two_models_are_compared_on_the_labelled_classes_and_the_same_resamples():
    rng = np.random.default_rng(0)
    labels = rng.random((120, 4)) < 0.3
    here = split(labels, patients=np.repeat(np.arange(60), 2).astype(str))
    good = pd.DataFrame(labels + rng.normal(scale=0.5, size=labels.shape), columns=list(UNION))
    noise = pd.DataFrame(rng.random(labels.shape), columns=list(UNION))
    found = compare(here(good), here(noise), seed=0)
    ours, theirs = (
        next(m.auroc for m in score("global", here(each), UNION, 0)[1] if m.classes == "labelled")
        for each in (good, noise)
    )
    assert found.auroc == pytest.approx(ours - theirs) and found.site == "nih"
    assert 0 < found.low < found.auroc < found.high
    same = compare(here(good), here(good), seed=0)
    assert (same.auroc, same.low, same.high) == (0, 0, 0)  # paired
    assert compare(here(good), here(noise[["Edema"]]), seed=0) is None
    before = {group: compare(here(good), here(noise[["Edema"]]), 0, against="before", group=group)
              for group in ("labelled", "unlabelled")}  # fmt: skip
    edema = score("global", here(good), UNION, 0)[0][0].auroc
    alone = score("global", here(noise[["Edema"]]), UNION, 0)[0][0].auroc
    assert before["labelled"].auroc == pytest.approx(edema - alone)
    assert before["unlabelled"] is None  # a class that the model before has not


def test_classes_of_too_few_patients_are_no_part_of_means_and_differences():
    labels = np.array(LABELS)
    labels[36:, 2:] = 0  # nine positives of Hernia and of Mass
    rows, means = score("global", split(labels)(SCORES), UNION, seed=0)
    found = [(row.few, row.low is None) for row in rows]
    assert found == [(False, False), (False, True), (True, True), (True, True)]
    edema, hernia, mass = (rows[c].auroc for c in (0, 2, 3))
    found_means = {m.classes: (m.auroc, m.defined, m.of, m.few, m.with_few) for m in means}
    every = pytest.approx((edema + hernia + mass) / 3)
    assert found_means == {
        "all": (edema, 1, 4, 2, every),
        "labelled": (edema, 1, 2, 1, pytest.approx((edema + mass) / 2)),
        "unlabelled": (None, 0, 2, 1, hernia),
    }
    assert (means[0].low, means[0].high) == (rows[0].low, rows[0].high)
    found = compare(split(labels)(SCORES), split(labels)(1 - SCORES), seed=0)
    assert (found.auroc, found.few) == (pytest.approx(2 * edema - 1), 1)
    mass = split(labels, labelled=("Mass",))(SCORES)
    assert compare(mass, mass, seed=0) is None


def test_calibration_is_of_every_class_with_a_label_and_pools_none():
    """What is too high for one class and too low for another does not add up to right."""
    labels = np.tile([[1, 0, 1, np.nan]], (10, 1))
    probabilities = pd.DataFrame({"Edema": [0.6] * 10, "Fibrosis": 0.4, "Hernia": 1.0, "Mass": 0.5})
    rows = score_calibration(split(labels, labelled=("Edema", "Fibrosis", "Mass"))(probabilities))
    found = {row.class_name: (row.labelled, row.error, row.output, row.prevalence) for row in rows}
    assert found == {
        "Edema": (True, pytest.approx(0.4), pytest.approx(0.6), 1),
        "Fibrosis": (True, pytest.approx(0.4), pytest.approx(0.4), 0),
        "Hernia": (False, 0, 1, 1),
    }
    assert {row.predictions for row in rows} == {10}
