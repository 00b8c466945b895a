from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import study_runs
from cxr_study.evaluation.bootstrap import difference_interval, mean_interval, resample
from cxr_study.studies.analysis import patient_intervals as module
from cxr_study.studies.analysis.patient_intervals import (
    METRICS,
    RESAMPLED_FILE,
    make,
    patient_intervals,
    read,
)
from cxr_study.studies.analysis.study_results import RUN, gather
from cxr_study.studies.plan.run_folder import RUNS, read_result
from cxr_study.studies.plan.study_file import read_study

RNG = np.random.default_rng(0)
IMAGES = 60
SITES = {"nih": ["Edema", "Mass"], "chexpert": ["Edema", "Fracture"]}
NAMES = ("Edema", "Fracture", "Mass")
LABELS = {name: (RNG.random(IMAGES) < 0.4).astype(float) for name in NAMES}
PATIENTS = [str(n // 3) for n in range(IMAGES)]
GROUPS = {
    "all": NAMES,
    "shared": ("Edema",),
    "unique": ("Fracture", "Mass"),
    "nih": ("Edema", "Mass"),
    "chexpert": ("Edema", "Fracture"),
}


def predicted(seed, names=NAMES):
    rng = np.random.default_rng(seed)
    return {name: rng.random(IMAGES).astype(np.float32) for name in names}


def resampled(probabilities, resamples=50):
    names = list(probabilities)
    labels = np.stack([LABELS[name] for name in names], axis=1)
    scores = np.stack(list(probabilities.values()), axis=1)
    return resample(labels, scores, names, PATIENTS, seed=0, resamples=resamples)


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Surgical aggregation with two seeds, vanilla with one, and sites with models of their own."""
    folder = tmp_path_factory.mktemp("study")
    tests = {"mimic": study_runs.table(LABELS, patient=PATIENTS)}
    runs = {
        "surgical": (study_runs.run(sites=SITES), {"global": predicted(1)}),
        "again": (study_runs.run(sites=SITES, seed=1), {"global": predicted(2)}),
        "elsewhere": (study_runs.run(sites=SITES, scenario="4"), {"global": predicted(3)}),
        "vanilla": (study_runs.run("vanilla", sites=SITES, seed=1), {"global": predicted(4)}),
        "fedbn": (
            study_runs.run("surgical", "fedbn", sites=SITES),
            {"nih": predicted(5, GROUPS["nih"]), "chexpert": predicted(6, GROUPS["chexpert"])},
        ),
        "alone": (study_runs.run("vanilla", sites=SITES, seed=7), {"global": predicted(8)}),
    }
    for run, models in runs.values():
        values = {(model, "mimic"): found for model, found in models.items()}
        study_runs.finish(run, folder, tests, values)
    planned = [*(run for run, _ in runs.values()), study_runs.run("centralised")]
    results = gather(read_study("clients"), planned, folder)
    return SimpleNamespace(
        results=results, runs=runs, found=patient_intervals(results, resamples=50)
    )


def line(frame, run, model="global", group="all"):
    """What a frame says of a model, as numbers."""
    facts = (run.scenario, run.row.method, run.row.strategy, run.seed, model, "mimic", group)
    wanted = dict(zip([*RUN, "group"], facts, strict=True))
    [found] = [each for each in frame.to_dict("records") if wanted.items() <= each.items()]
    return [value for name, value in found.items() if name not in wanted]


def figures(estimates):
    """Of the estimates of both metrics, as in a line."""
    ends = [end for each in estimates for end in (each.value, each.low, each.high)]
    return [estimates[0].classes, *ends]


def means_of(probabilities, classes):
    model = resampled(probabilities)
    return figures([mean_interval(model, metric, classes) for metric in METRICS])


def differences_of(first, second, classes):
    pair = resampled(first), resampled(second)
    return figures([difference_interval(*pair, metric, classes) for metric in METRICS])


def test_every_model_has_the_bootstrap_interval_of_both_means_over_each_group(study):
    for name in ("surgical", "vanilla", "elsewhere"):
        run, models = study.runs[name]
        for group, classes in GROUPS.items():
            wanted = means_of(models["global"], classes)
            assert line(study.found.means, run, group=group) == pytest.approx(wanted)
    run, models = study.runs["fedbn"]  # which lacks a class of all, and none of NIH
    assert line(study.found.means, run, "nih") == pytest.approx([0, *[np.nan] * 6], nan_ok=True)
    wanted = means_of(models["nih"], GROUPS["nih"])
    assert line(study.found.means, run, "nih", "nih") == pytest.approx(wanted)


def test_differences_are_surgical_minus_other_on_the_same_resamples(study):
    run, models = study.runs["vanilla"]
    for group, classes in GROUPS.items():
        wanted = differences_of(study.runs["again"][1]["global"], models["global"], classes)
        assert line(study.found.differences, run, group=group) == pytest.approx(wanted)
    run, models = study.runs["fedbn"]  # a site's model is compared with the global one
    pair = study.runs["surgical"][1]["global"], models["chexpert"]
    wanted = differences_of(*pair, GROUPS["chexpert"])
    found = line(study.found.differences, run, "chexpert", "chexpert")
    assert found == pytest.approx(wanted)
    told = study.found.differences[["method", "strategy", "seed"]].drop_duplicates()
    pairs = [("surgical", "fedbn", 0), ("vanilla", "fedbn+", 1)]  # of one scenario and seed
    assert sorted(told.itertuples(index=False, name=None)) == pairs


def test_classes_are_held_against_each_other_one_by_one(study):
    (ours, first), (theirs, second) = study.runs["again"], study.runs["vanilla"]
    found = study.found.classes
    assert set(zip(found["scenario"], found["method"], found["seed"], strict=True)) == {
        (theirs.scenario, "vanilla", ours.seed)
    }
    for name in NAMES:
        wanted = difference_interval(
            resampled(first["global"]), resampled(second["global"]), "auroc", [name]
        )
        [line] = found[found["class"] == name].to_dict("records")
        assert [line["patient_low"], line["patient_high"]] == pytest.approx(
            [wanted.low, wanted.high]
        )
        assert (line["strategy"], line["test"]) == ("fedbn+", "mimic")


def test_of_models_of_sites_only_the_tested_sites_counts_class_by_class(tmp_path):
    tests = {name: study_runs.table(LABELS, patient=PATIENTS) for name in ("nih", "chexpert")}
    runs = [study_runs.run(sites=SITES), study_runs.run("personalised", "fedbn", sites=SITES)]
    ours = {("global", test): predicted(1) for test in tests}
    own = {(site, test): predicted(2, GROUPS[site]) for site in SITES for test in tests}
    for run, models in zip(runs, (ours, own), strict=True):
        study_runs.finish(run, tmp_path, tests, models)
    results = gather(read_study("nih-chexpert"), runs, tmp_path)
    found = patient_intervals(results, resamples=20).classes
    assert len(found) == len(tests) * len(NAMES)
    ends = found.set_index(["test", "class"])["patient_low"]
    assert np.isnan(ends["nih", "Fracture"]) and not np.isnan(ends["nih", "Mass"])
    assert np.isnan(ends["chexpert", "Mass"]) and not np.isnan(ends["chexpert", "Fracture"])


def test_without_a_global_model_it_is_held_against_that_of_the_same_site(tmp_path):
    tests = {"mimic": study_runs.table(LABELS, patient=PATIENTS)}
    surgical, other = study_runs.run("surgical", "fedbn", sites=SITES), study_runs.run("vanilla")
    own = predicted(1, GROUPS["nih"])
    study_runs.finish(surgical, tmp_path, tests, {("nih", "mimic"): own})
    both = {("nih", "mimic"): predicted(2), ("chexpert", "mimic"): predicted(3)}
    study_runs.finish(other, tmp_path, tests, both)
    results = gather(read_study("clients"), [surgical, other], tmp_path)
    found = patient_intervals(results, resamples=50).differences
    assert set(found["model"]) == {"nih"}
    wanted = difference_interval(resampled(own), resampled(predicted(2)), "auroc", GROUPS["nih"])
    assert line(found, other, "nih", "nih")[1] == pytest.approx(wanted.value)


def test_runs_that_are_kept_are_not_resampled_again_and_each_is_reported(study, monkeypatch):
    monkeypatch.setattr(module, "resample", None)
    reported = []
    again = patient_intervals(
        study.results, resamples=50, report=lambda done, total: reported.append((done, total))
    )
    pd.testing.assert_frame_equal(again.means, study.found.means)
    pd.testing.assert_frame_equal(again.differences, study.found.differences)
    assert reported == [(n, 6) for n in range(1, 7)]


def test_without_surgical_aggregation_there_are_no_differences(tmp_path):
    tests = {"mimic": study_runs.table(LABELS, patient=PATIENTS)}
    run = study_runs.run("vanilla")
    study_runs.finish(run, tmp_path, tests, {("global", "mimic"): predicted(1)})
    found = patient_intervals(gather(read_study("clients"), [run], tmp_path), resamples=5)
    assert not found.means.empty and found.differences.empty
    assert list(found.differences) == list(found.means)


OTHERS = dict(reversed(predicted(9).items()))


@pytest.fixture
def kept(tmp_path):
    """A finished run on two test sets; the second lacks a class, as site b's own model does."""
    run = study_runs.run("personalised")
    tables = {
        "nih": study_runs.table(LABELS, patient=PATIENTS),
        "mimic": study_runs.table({"Mass": LABELS["Mass"]}, patient=PATIENTS),
    }
    own = {name: OTHERS[name] for name in ("Mass", "Fracture")}
    predicted = {("a", test): OTHERS for test in tables} | {("b", test): own for test in tables}
    study_runs.finish(run, tmp_path, tables, predicted)
    result = read_result(tmp_path / RUNS / run.key)
    patients = dict.fromkeys(result.tests.values(), np.array(PATIENTS))
    return SimpleNamespace(
        make=lambda resamples=20: make(tmp_path, run.key, result, resamples),
        read=lambda resamples=20: read(tmp_path, run.key, result, patients, resamples),
        place=tmp_path / RUNS / run.key,
    )


def test_every_model_is_resampled_on_every_test_set_over_the_classes_that_both_have(kept):
    kept.make()
    found = kept.read()
    assert {key: model.classes for key, model in found.items()} == {
        ("a", "nih"): NAMES,
        ("a", "mimic"): ("Mass",),
        ("b", "nih"): ("Fracture", "Mass"),
        ("b", "mimic"): ("Mass",),
    }
    for model in found.values():
        labels = np.stack([LABELS[name] for name in model.classes], axis=1)
        scores = np.stack([OTHERS[name] for name in model.classes], axis=1)
        wanted = resample(labels, scores, model.classes, PATIENTS, seed=0, resamples=20)
        for metric in METRICS:
            np.testing.assert_array_equal(model.values[metric], wanted.values[metric])
            np.testing.assert_array_equal(model.drawn[metric], wanted.drawn[metric])
        assert (model.patients.tolist(), model.seed) == (PATIENTS, 0)


def test_another_number_of_resamples_or_an_older_format_is_made_anew(kept, monkeypatch):
    kept.make(20)
    kept.make(30)
    assert len(kept.read(30)["a", "nih"].drawn["auroc"]) == 30
    monkeypatch.setattr(module, "FORMAT", module.FORMAT + 1)
    made = (kept.place / RESAMPLED_FILE).read_bytes()
    kept.make(30)
    assert (kept.place / RESAMPLED_FILE).read_bytes() != made


def test_the_file_appears_whole_or_not_at_all(kept, monkeypatch):
    def full(file, **arrays):
        file.write(b"half")
        raise OSError("no space left")

    before = set(kept.place.iterdir())
    monkeypatch.setattr(module.np, "savez", full)
    with pytest.raises(OSError, match="no space"):
        kept.make()
    assert set(kept.place.iterdir()) == before
