from types import SimpleNamespace

import numpy as np
import pytest

import study_runs
from cxr_study.evaluation.delong import delong_test
from cxr_study.evaluation.paired_tests import holm, mark
from cxr_study.studies.analysis.class_tests import FAMILY, class_tests
from cxr_study.studies.analysis.study_results import gather
from cxr_study.studies.plan.study_file import read_study

RNG = np.random.default_rng(0)
IMAGES = 60
SITES = {"nih": ["Edema", "Mass"], "chexpert": ["Edema", "Fracture"]}
LABELS = {name: (RNG.random(IMAGES) < 0.4).astype(float) for name in ("Edema", "Mass", "Fracture")}
LABELS["Mass"][:10] = np.nan
LABELS["Fracture"][:] = 0.0
LABELS["Fracture"][3] = 1.0  # a single positive
PATIENTS = [str(n // 3) for n in range(IMAGES)]
TABLE = study_runs.table(LABELS, patient=PATIENTS)


def predicted(skill, seed, names=tuple(LABELS)):
    rng = np.random.default_rng(seed)
    return {
        name: (skill * np.nan_to_num(LABELS[name]) + rng.random(IMAGES)).astype(np.float32) / 5
        for name in names
    }


@pytest.fixture
def study(tmp_path):
    """Adds finished runs to a study, and tests them."""
    runs = []

    def add(models, method="surgical", strategy="fedbn+", tests=("nih",), table=TABLE, **facts):
        run = study_runs.run(method, strategy, sites=SITES, **facts)
        values = {(model, test): found for model, found in models.items() for test in tests}
        study_runs.finish(run, tmp_path, dict.fromkeys(tests, table), values)
        runs.append(run)
        return run

    def found(**how):
        return class_tests(gather(read_study("nih-chexpert"), runs, tmp_path), **how)

    return SimpleNamespace(add=add, found=found, runs=runs, folder=tmp_path)


def test_every_class_is_tested_over_its_labelled_images(study):
    ours, theirs = predicted(1, 1), predicted(0.2, 2)
    study.add({"global": ours})
    study.add({"global": theirs}, "vanilla")
    found = study.found()
    assert found["method"].tolist() == ["vanilla"] * 3
    lines = found.set_index("class")
    for name in ("Edema", "Mass"):
        known = ~np.isnan(LABELS[name])
        labels = LABELS[name][known]
        wanted = delong_test(labels, ours[name][known], theirs[name][known])
        line = lines.loc[name]
        assert line["images"] == known.sum()
        assert line["patients"] == len({PATIENTS[n] for n in np.flatnonzero(known)})
        assert line["positives"] == labels.sum()
        names = ["surgical", "other", "difference", "low", "high", "z", "p"]
        values = [
            wanted.first, wanted.second, wanted.difference, wanted.low, wanted.high, wanted.z,
            wanted.p,
        ]  # fmt: skip
        assert line[names].tolist() == pytest.approx(values)


def test_what_is_not_defined_is_a_line_without_figures(study):
    study.add({"global": predicted(1, 1)})
    study.add({"nih": predicted(1, 2, ("Edema",))}, "personalised", "fedbn")
    lines = study.found().set_index("class")
    for name in ("Mass", "Fracture"):  # lacking, and with a single positive
        assert lines.loc[name, ["surgical", "other", "difference", "low", "z", "p"]].isna().all()
        assert (lines.loc[name, "mark"], lines.loc[name, "tests"]) == ("", 1)


def test_figures_are_numbers_where_none_is_defined(study):
    table = study_runs.table({"Fracture": LABELS["Fracture"]})
    for method in ("surgical", "vanilla"):
        study.add({"global": predicted(1, 1, ("Fracture",))}, method, table=table)
    figures = study.found()[["surgical", "other", "difference", "low", "high", "z", "p", "holm"]]
    assert figures.isna().all(axis=None) and set(figures.dtypes) == {np.dtype(float)}


def test_p_is_adjusted_over_the_classes_of_a_pair_of_runs(study):
    for seed in (0, 1):
        study.add({"global": predicted(1, seed)}, seed=seed)
        study.add({"global": predicted(0.1, seed + 5)}, "vanilla", seed=seed)
    study.add({"global": predicted(0.5, 11)}, "partial_loss", seed=0)
    families = list(study.found().groupby(FAMILY))
    assert len(families) == 3
    for _, family in families:
        p_values = [None if np.isnan(p) else p for p in family["p"]]
        assert family["tests"].tolist() == [2] * 3
        assert family["mark"].tolist() == [mark(p) for p in holm(p_values)]
        adjusted = [np.nan if p is None else p for p in holm(p_values)]
        assert family["holm"].tolist() == pytest.approx(adjusted, nan_ok=True)


def test_only_finished_runs_of_a_scenario_and_seed_are_paired(study):
    study.add({"global": predicted(1, 1)}, seed=0)
    study.add({"global": predicted(1, 2)}, seed=1)
    study.add({"global": predicted(1, 3)}, "vanilla", seed=1)
    study.add({"global": predicted(1, 4)}, "vanilla", seed=1, scenario="20")
    study.runs.append(study_runs.run("vanilla", seed=0))
    reported = []
    found = study.found(report=lambda done, total: reported.append((done, total)))
    assert set(zip(found["scenario"], found["seed"], strict=True)) == {("2", 1)}
    assert reported == [(1, 1)]


def test_sites_own_models_are_tested_on_their_own_test_split_alone(study):
    ours, own = predicted(1, 1), {"nih": predicted(1, 2), "chexpert": predicted(1, 3)}
    tests = ("nih", "chexpert", "mimic")
    study.add({"global": ours}, tests=tests)
    study.add(own, "personalised", "fedbn", tests=tests)
    lines = study.found().set_index(["test", "class"])
    assert set(lines.index.get_level_values("test")) == {"nih", "chexpert"}
    for site in SITES:
        wanted = delong_test(LABELS["Edema"], ours["Edema"], own[site]["Edema"])
        assert lines.loc[(site, "Edema"), "p"] == pytest.approx(wanted.p)


def test_models_that_were_tested_on_other_images_are_not_compared(study):
    study.add({"global": predicted(1, 1)})
    other = study_runs.table(LABELS, patient=PATIENTS[::-1])
    study.add({"global": predicted(1, 2)}, "vanilla", table=other)
    found = study.found()
    assert found.empty and {*FAMILY, "class", "p", "holm", "mark"} <= set(found)
