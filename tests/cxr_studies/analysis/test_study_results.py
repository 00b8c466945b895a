import os

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.metrics import average_precision_score, log_loss, roc_auc_score

import study_runs
from cxr_studies.analysis import study_results as module
from cxr_studies.analysis.study_results import by_run, over_seeds
from cxr_studies.plan.row import Row

RNG = np.random.default_rng(0)
LABELS = {
    "Edema": [1.0, 0, 1, 0, 1, 0, 0, 1],
    "Mass": [1.0, 0, np.nan, 0, 1, np.nan, 0, 1],
    "Fracture": [0.0] * 8,
}
PREDICTED = {name: RNG.uniform(0.1, 0.9, 8).astype(np.float32) for name in LABELS}
TESTS = {"nih": study_runs.table(LABELS)}


def test_finished_runs_are_measured(study):
    run = study.add({"global": PREDICTED}, TESTS)
    study.runs.append(study_runs.run(seed=9))
    found = study.gathered()
    assert found.finished == (run,) and list(found.results) == [run.key]
    assert set(found.scores["seed"]) == {0}
    scores = found.scores.set_index("class")
    for name in ("Edema", "Mass"):
        known = ~np.isnan(LABELS[name])
        labels, predicted = np.array(LABELS[name])[known], PREDICTED[name][known].astype(float)
        bins = np.clip(np.ceil(predicted * 10).astype(int) - 1, 0, 9)
        error = sum(
            abs(labels[bins == b].mean() - predicted[bins == b].mean()) * (bins == b).mean()
            for b in np.unique(bins)
        )
        functions = {"auroc": roc_auc_score, "auprc": average_precision_score, "bce": log_loss}
        wanted = {metric: function(labels, predicted) for metric, function in functions.items()}
        wanted |= {"ece": error, "positives": labels.sum(), "negatives": (1 - labels).sum()}
        assert scores.loc[name, list(wanted)].to_dict() == pytest.approx(wanted)
    row = scores.loc["Fracture"]  # without positives there are no areas but a loss
    assert np.isnan(row["auroc"]) and np.isnan(row["auprc"])
    assert row["bce"] == pytest.approx(-np.log(1 - PREDICTED["Fracture"].astype(float)).mean())
    assert scores["sites"].to_dict() == {"Edema": 2, "Mass": 1, "Fracture": 1}
    assert scores["shared"].to_dict() == {"Edema": True, "Mass": False, "Fracture": False}
    assert scores["labelled"].to_dict() == {"Edema": True, "Mass": True, "Fracture": False}
    assert found.means.set_index("group").loc["all", ["of", "classes"]].tolist() == [3, 2]
    assert found.seeds.set_index("group").loc["all", "seeds"] == 1


def test_where_nothing_is_finished_there_is_nothing(study):
    study.runs.append(study_runs.run())
    assert study.gathered() is None


def test_a_class_that_the_model_does_not_have_is_an_undefined_row(study):
    study.add({"nih": {name: PREDICTED[name] for name in ("Edema", "Mass")}}, TESTS)
    found = study.gathered().scores.set_index("class")
    assert list(found["predicted"]) == [True, True, False]
    assert found.loc["Fracture", ["auroc", "auprc", "bce", "ece"]].isna().all()


def test_the_fully_labelled_baseline_shares_the_scenarios_classes(study):
    study.add({"global": PREDICTED}, TESTS)
    study.add({"global": PREDICTED}, TESTS, "complete", sites={"nih": list(LABELS)})
    found = study.gathered().scores.groupby("method")["shared"].apply(list)
    assert found["complete"] == found["surgical"] == [True, False, False]


def score(name, auroc, **other):
    return {
        "scenario": "2", "method": "surgical", "strategy": "fedbn+", "seed": 0, "model": "global",
        "test": "nih", "class": name, "shared": False, "labelled": True, "predicted": True,
        "auroc": auroc, "auprc": 0.5, "bce": 0.3, "ece": 0.1, **other,
    }  # fmt: skip


def means(*scores):
    """Group -> its line."""
    return by_run(pd.DataFrame(list(scores))).set_index("group")


def test_mean_and_sample_sd_over_the_classes_of_each_group():
    scores = (score("Edema", 0.9, shared=True), score("Mass", 0.8), score("Fracture", 0.6))
    found = means(*scores, score("Support devices", 0.5, labelled=False))
    wanted = {"all": 0.7, "shared": 0.9, "unique": 0.7, "elsewhere": 0.5, "nih": 0.85}
    assert found["auroc"].to_dict() == pytest.approx({**wanted, "chexpert": 0.75})
    assert found.loc["unique", "auroc_sd"] == pytest.approx(np.std([0.8, 0.6], ddof=1))
    assert set(found.index) == set(module.GROUPS)


def test_a_class_that_is_not_defined_is_left_out_and_one_that_the_model_lacks_undoes_it():
    found = means(score("Edema", 0.9), score("Mass", np.nan))
    assert found.loc["all", ["auroc", "classes", "of"]].tolist() == [0.9, 1, 2]
    lacks = score("Mass", np.nan, predicted=False, bce=np.nan)
    found = means(score("Edema", 0.9, shared=True), lacks)
    assert np.isnan(found.loc["all", "auroc"]) and np.isnan(found.loc["all", "bce"])
    assert found.loc["shared", "auroc"] == 0.9


def test_over_seeds_they_have_a_t_interval_where_there_are_two():
    values = [0.7, 0.8, 0.75]
    lines = [score("Edema", value, seed=seed) for seed, value in enumerate(values)]
    [line] = over_seeds(means(*lines).reset_index().query("group == 'all'")).to_dict("records")
    low, high = stats.t.interval(0.95, 2, loc=0.75, scale=stats.sem(values))
    ends = [line["auroc"], line["auroc_low"], line["auroc_high"]]
    assert line["seeds"] == 3 and ends == pytest.approx([0.75, low, high])
    line = over_seeds(means(score("Edema", 0.7)).reset_index()).iloc[0]
    assert line["auroc"] == 0.7 and np.isnan(line["auroc_low"])
    line = over_seeds(means(score("Edema", np.nan, predicted=False)).reset_index()).iloc[0]
    assert line["seeds"] == 0 and np.isnan(line["auroc"])


@pytest.mark.parametrize(("rows", "wanted"), [
    (["vanilla fedbn+", "surgical fedavg", "surgical fedbn+"], Row("surgical", "fedbn+")),
    (["surgical fedbn", "surgical fedavg"], Row("surgical", "fedbn")),
    (["vanilla fedbn+"], None),
])  # fmt: skip
def test_the_reference_is_surgical_aggregation_with_fedbn_plus_or_its_first_strategy(rows, wanted):
    assert module.reference([study_runs.run(*row.split()) for row in rows]) == wanted


@pytest.mark.parametrize(("method", "models", "test", "wanted"), [
    ("surgical", ["global"], "nih", {"global": "global"}),
    ("personalised", ["nih", "chexpert"], "nih", {"nih": "local"}),
    ("personalised", ["nih", "chexpert"], "mimic", {"nih": "local", "chexpert": "local"}),
    ("individual", ["nih", "chexpert"], "nih", {"nih": "nih", "chexpert": "chexpert"}),
    ("surgical", ["nih", "chexpert", "server"], "nih", {"nih": "local", "server": "server"}),
    ("surgical", ["nih-1", "server"], "nih", {"nih-1": "local", "server": "server"}),
    ("individual", ["nih-1", "nih-2"], "nih", {"nih-1": "local", "nih-2": "local"}),
    ("individual", ["nih", "south"], "nih", {"nih": "local"}),
    ("individual", ["nih", "south"], "south", {"south": "local"}),
])  # fmt: skip
def test_models_are_named_as_in_tables_and_others_left_out(method, models, test, wanted):
    run = {"scenario": "2", "method": method, "strategy": "fedbn+", "seed": 0, "test": test}
    found = module.with_table_models(pd.DataFrame({**run, "model": models, "was": models}))
    assert dict(zip(found["was"], found["model"], strict=True)) == wanted


@pytest.mark.parametrize("processes", [1, 2])
def test_what_comes_out_is_in_the_order_of_the_jobs_and_each_is_reported(processes, reported):
    def do(work, jobs):
        return module.run_in_processes("working", work, jobs, processes)

    assert do(pow, [(2, 3), (3, 2), (5, 1)]) == [8, 9, 5]
    assert reported == {"working": [(1, 3), (2, 3), (3, 3)]}
    assert (set(do(os.getpid, [()] * 2)) == {os.getpid()}) == (processes == 1)
