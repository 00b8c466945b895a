import numpy as np
import pytest
from sklearn.metrics import average_precision_score, log_loss, roc_auc_score

import study_runs
from cxr_study.studies.analysis.scores import scores

RNG = np.random.default_rng(0)
LABELS = {
    "Edema": [1.0, 0, 1, 0, 1, 0, 0, 1],
    "Mass": [1.0, 0, np.nan, 0, 1, np.nan, 0, 1],
    "Fracture": [0.0] * 8,
}
PREDICTED = {name: RNG.uniform(0.1, 0.9, 8).astype(np.float32) for name in LABELS}


@pytest.fixture
def measured(tmp_path):
    """Scores of a finished run with some facts changed; one that is not finished beside it."""

    def measured(predicted=None, other=None, **facts):
        run = study_runs.run(**facts)
        tests = {"nih": study_runs.table(LABELS)}
        study_runs.finish(run, tmp_path, tests, predicted or {("global", "nih"): PREDICTED})
        runs = [run, study_runs.run(seed=9)]
        if other is not None:
            study_runs.finish(other, tmp_path, tests, {("global", "nih"): PREDICTED})
            runs.append(other)
        return scores(runs, tmp_path)

    return measured


def test_every_class_of_the_test_set_is_measured_over_its_labelled_images(measured):
    found = measured().set_index("class")
    for name in ("Edema", "Mass"):
        known = ~np.isnan(LABELS[name])
        labels, predicted = np.array(LABELS[name])[known], PREDICTED[name][known].astype(float)
        row = found.loc[name]
        assert row["auroc"] == pytest.approx(roc_auc_score(labels, predicted))
        assert row["auprc"] == pytest.approx(average_precision_score(labels, predicted))
        assert row["bce"] == pytest.approx(log_loss(labels, predicted))
        assert (row["positives"], row["negatives"]) == (labels.sum(), (1 - labels).sum())
        bins = np.clip(np.ceil(predicted * 10).astype(int) - 1, 0, 9)
        error = sum(
            abs(labels[bins == b].mean() - predicted[bins == b].mean()) * (bins == b).mean()
            for b in np.unique(bins)
        )
        assert row["ece"] == pytest.approx(error)


def test_without_positives_there_are_no_areas_but_a_loss(measured):
    row = measured().set_index("class").loc["Fracture"]
    assert np.isnan(row["auroc"]) and np.isnan(row["auprc"])
    assert row["bce"] == pytest.approx(-np.log(1 - PREDICTED["Fracture"].astype(float)).mean())


def test_what_a_model_lacks_is_not_defined_and_still_a_row(measured):
    own = {("a", "nih"): {name: PREDICTED[name] for name in ("Edema", "Mass")}}
    found = measured(own).set_index("class")
    assert list(found["predicted"]) == [True, True, False]
    assert found.loc["Fracture", ["auroc", "auprc", "bce", "ece"]].isna().all()


def test_a_class_is_shared_where_all_sites_label_it(measured):
    found = measured().set_index("class")
    assert found["sites"].to_dict() == {"Edema": 2, "Mass": 1, "Fracture": 1}
    assert found["shared"].to_dict() == {"Edema": True, "Mass": False, "Fracture": False}


def test_of_the_fully_labelled_baseline_too(measured):
    baseline = study_runs.run("complete", sites={"nih": list(LABELS)})
    found = measured(other=baseline)
    baseline = found[found["method"] == "complete"].set_index("class")
    assert baseline["shared"].to_dict() == {"Edema": True, "Mass": False, "Fracture": False}


def test_a_class_that_the_tested_site_does_not_label_is_told(measured):
    own = {"nih": ["Edema", "Mass"], "b": ["Edema", "Fracture"]}
    found = measured(sites=own).set_index("class")
    assert found["labelled"].to_dict() == {"Edema": True, "Mass": True, "Fracture": False}


def test_a_run_that_is_not_finished_has_no_rows(measured):
    assert set(measured()["seed"]) == {0}
