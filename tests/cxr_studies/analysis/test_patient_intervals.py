import zlib
from dataclasses import replace
from itertools import count
from types import SimpleNamespace

import numpy as np
import pytest

import study_runs
from cxr_studies.analysis.patient_intervals import METRICS, patient_intervals
from cxr_studies.analysis.study_results import RUN
from cxr_study.evaluation import bootstrap
from cxr_study.evaluation.bootstrap import difference_interval, mean_interval, resample

RNG = np.random.default_rng(100)
IMAGES = 60
NIH, CHEXPERT = ("Edema", "Mass"), ("Edema", "Fracture")
NAMES = ("Edema", "Fracture", "Mass")
LABELS = {name: (RNG.random(IMAGES) < 0.4).astype(float) for name in NAMES}
PATIENTS = [str(n // 3) for n in range(IMAGES)]
GROUPS = {"all": NAMES, "shared": ("Edema",), "unique": ("Fracture", "Mass"), "nih": NIH}
GROUPS |= {"chexpert": CHEXPERT}
OF_NIH = {"unique": ("Mass",), "elsewhere": ("Fracture",)}
TESTS = {
    "nih": study_runs.table(LABELS, patient=PATIENTS),
    "mimic": study_runs.table({name: LABELS[name] for name in NIH}, patient=PATIENTS),
}
UNDEFINED = [0, *[np.nan] * 6]


def predicted(seed, names=NAMES):
    rng = np.random.default_rng(seed)
    return {name: rng.random(IMAGES).astype(np.float32) for name in names}


def seeds(study):
    """Test set -> the seed of its resamples."""
    kept = [result.tests.items() for result in study.gathered().results.values()]
    return {test: zlib.crc32(key.encode()) for tests in kept for test, key in tests}


def drawn(model, seed):
    """Metrics of a model on resamples of a test set."""
    labels = np.stack([LABELS[name] for name in model], axis=1)
    scores = np.stack(list(model.values()), axis=1)
    return resample(labels, scores, list(model), PATIENTS, seed=seed, resamples=50)


def figures(kind, resampled, classes):
    """Number of classes, and the figures of both metrics with their ends."""
    found = [kind(*resampled, metric, classes) for metric in METRICS]
    if None in found:
        return UNDEFINED
    return [found[0].classes, *(end for of in found for end in (of.value, of.low, of.high))]


def lines(frame):
    """Facts -> numbers."""
    return {facts: list(rest) for facts, *rest in frame.set_index([*RUN, "group"]).itertuples()}


def test_means_and_differences_from_surgical_aggregation_are_bootstrapped(
    study, monkeypatch, reported
):
    both = {"nih": predicted(5, NIH), "chexpert": predicted(6, CHEXPERT)}
    ours = {seed: predicted(seed) for seed in (0, 1)}
    runs = [(study.add({"global": ours[seed]}, TESTS, seed=seed), None) for seed in ours]
    other = dict(reversed(predicted(4).items()))  # in another order
    runs.append((study.add({"global": other}, TESTS, "vanilla", seed=1), ours[1]))
    runs.append((study.add({"global": other}, TESTS, "vanilla", seed=7), None))
    runs.append((study.add(both, TESTS, "surgical", "fedbn"), ours[0]))
    models = [*({"global": each} for each in (ours[0], ours[1], other, other)), both]
    study.runs.append(study_runs.run("centralised"))
    found = patient_intervals(study.gathered(), resamples=50)
    seed_of = seeds(study)
    assert len({*seed_of.values()}) == len(TESTS)  # independent of each other

    means, differences, classwise = {}, {}, {}
    for (run, reference), own in zip(runs, models, strict=True):
        for model, test in ((model, test) for model in own for test in TESTS):
            facts = (run.scenario, run.row.method, run.row.strategy, run.seed, model, test)
            mine = drawn(own[model], seed_of[test])
            pair = [drawn(reference, seed_of[test]), mine] if reference else []
            groups = GROUPS | (OF_NIH if test == "nih" else {})
            for group, names in groups.items():
                classes = [name for name in names if name in TESTS[test]]
                key = (*facts, group)
                means[key] = figures(mean_interval, [mine], classes)
                if reference:
                    differences[key] = figures(difference_interval, pair, classes)
            if reference and model in ("global", test):
                for name in groups["all"]:
                    if name in TESTS[test]:
                        ends = figures(difference_interval, pair, [name])[2:4]
                        classwise[(*facts[:4], test, name)] = ends
    for frame, wanted in ((found.means, means), (found.differences, differences)):
        got = lines(frame)
        assert got.keys() == wanted.keys()
        for key, numbers in wanted.items():
            assert (key, got[key]) == (key, pytest.approx(numbers, nan_ok=True))
    assert UNDEFINED in means.values()  # local models lack a class
    *facts, low, high = (found.classes[name].tolist() for name in found.classes)
    got = dict(zip(zip(*facts, strict=True), zip(low, high, strict=True), strict=True))
    assert got.keys() == classwise.keys() and len(found.classes) == len(classwise)
    for key, ends in classwise.items():
        assert got[key] == pytest.approx(tuple(ends), nan_ok=True)

    monkeypatch.setattr(bootstrap, "_count", None)  # what is kept is not made again
    reported.clear()
    again = patient_intervals(study.gathered(), resamples=50)
    assert again.means.equals(found.means) and again.differences.equals(found.differences)
    assert reported == {"resampling patients": [(n, 5) for n in range(1, 6)]}


def test_without_a_global_model_the_reference_is_the_model_of_the_same_site(study):
    both = {"nih": predicted(2), "chexpert": predicted(3)}
    run, own = study.add(both, TESTS, "vanilla"), predicted(1, NIH)
    found = patient_intervals(study.gathered(), resamples=50)
    assert not found.means.empty and found.differences.empty
    assert list(found.differences) == list(found.means)
    study.add({"nih": own}, TESTS, "surgical", "fedbn")
    found = lines(patient_intervals(study.gathered(), resamples=50).differences)
    assert {facts[4] for facts in found} == {"nih"}
    seed = seeds(study)["mimic"]
    wanted = figures(difference_interval, [drawn(own, seed), drawn(both["nih"], seed)], NIH)
    got = found[run.scenario, "vanilla", "fedbn+", 0, "nih", "mimic", "nih"]
    assert got == pytest.approx(wanted)


def test_a_global_model_is_compared_with_that_of_the_tested_site(study):
    own, other = predicted(1, NIH), predicted(2)
    study.add({"nih": own}, TESTS, "surgical", "fedbn")
    study.add({"global": other}, TESTS, "vanilla")
    gathered = study.gathered()
    found, seed = lines(patient_intervals(gathered, resamples=50).differences), seeds(study)["nih"]
    assert {facts[4:6] for facts in found} == {("global", "nih")}  # MIMIC is no site's
    wanted = figures(difference_interval, [drawn(own, seed), drawn(other, seed)], NIH)
    assert found["2", "vanilla", "fedbn+", 0, "global", "nih", "nih"] == pytest.approx(wanted)


def test_a_run_of_several_scenarios_is_compared_within_each_of_them(study):
    ours = {scenario: predicted(n) for n, scenario in enumerate(("2", "4"))}
    for scenario, each in ours.items():
        study.add({"global": each}, TESTS, scenario=scenario)
    other = predicted(4)
    run = study.add({"global": other}, TESTS, "complete", "fedavg")
    study.runs.append(replace(run, scenario="4"))
    found, seed = patient_intervals(study.gathered(), resamples=50), seeds(study)["nih"]
    for scenario, each in ours.items():
        pair = [drawn(each, seed), drawn(other, seed)]
        key = (scenario, "complete", "fedavg", 0, "global", "nih", "all")
        wanted = figures(difference_interval, pair, NAMES)
        assert lines(found.differences)[key] == pytest.approx(wanted)
        of_class = found.classes.query(f"scenario == '{scenario}' & test == 'nih'")
        ends = [figures(difference_interval, pair, [name])[2:4] for name in of_class["class"]]
        assert of_class[["patient_low", "patient_high"]].to_numpy() == pytest.approx(np.array(ends))


def test_another_number_of_resamples_is_computed_again(study):
    study.add({"global": predicted(1)}, TESTS)
    made = [patient_intervals(study.gathered(), resamples=n).means for n in (20, 30)]
    assert not made[0].equals(made[1])


def test_a_slow_disk_raises_no_warning(study, monkeypatch):
    clock = SimpleNamespace(time=count().__next__)  # each look at it is a second later
    monkeypatch.setattr("joblib.memory.time", clock)
    study.add({"global": predicted(1)}, TESTS)
    assert not patient_intervals(study.gathered(), resamples=20).means.empty
