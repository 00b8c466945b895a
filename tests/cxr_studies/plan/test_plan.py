import dataclasses
import json
import shutil
from pathlib import Path

import pandas as pd
import pytest
import yaml

import study_data
from cxr_studies.partition import class_sets
from cxr_studies.plan import plan
from cxr_studies.plan.data_file import StudyData
from cxr_studies.plan.site_files import data_sets
from cxr_studies.plan.study_file import Selection, read_study
from cxr_study.common.errors import InputError
from cxr_study.data.labels.vocabulary import CHEXPERT_CLASSES, NIH_CLASSES
from cxr_study.data.sites.site_data import load_labels
from cxr_study.data.sites.site_file import read_site_file
from cxr_study.data.sites.split_file import read_split
from surgical_aggregation.checkpoints.checkpoint import save

PROJECT = Path(__file__).parents[3] / "poc/project.yml"
SHARED = set(NIH_CLASSES) & set(CHEXPERT_CLASSES)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("plan")


@pytest.fixture(scope="module")
def found(small_data, folder):
    return data_sets(small_data.data, ["nih", "chexpert", "mimic"], folder / "data")


@pytest.fixture
def runs(small_data, folder, found):
    """The runs of a shipped study on the small data, some of the data file changed."""

    def runs(study, data=None, project=None, found=found, **selection):
        data = small_data.data.model_copy(update=data or {})
        return plan.runs(read_study(study), data, found, folder, Selection(**selection), project)

    return runs


def keys(found):
    return [run.key for run in found]


@pytest.mark.parametrize(("method", "project"), [("surgical", str(PROJECT)), ("centralised", None)])
def test_federated_runs_are_made_in_the_poc_where_there_is_one(runs, method, project):
    run, *_ = runs("clients", project=PROJECT, scenarios=("2",), methods=(method,), seeds=1)
    assert run.where["project"] == project
    assert run.what.get("poc", False) == (project is not None)
    nih, mimic = (load_labels(read_site_file(Path(path))) for path in run.where["tests"].values())
    assert set(nih.table["split"]) > set(mimic.table["split"]) == {"test"}  # no site is MIMIC


def test_the_published_class_sets_are_the_sites_and_the_baseline_is_one_site(runs):
    sets, complete, _ = runs("clients", scenarios=("3",), methods=("surgical", "complete"), seeds=1)
    assert list(map(tuple, sets.what["sites"].values())) == list(class_sets.published(3))
    assert sets.where["sites"] == ["nih-1", "nih-2", "nih-3"]
    assert sets.what["union"] == sorted(NIH_CLASSES)
    assert complete.where["sites"] == ["nih"]
    assert set(complete.what["sites"]["nih"]) == set(NIH_CLASSES)


def test_data_sets_that_are_sites_have_all_classes_or_those_of_both(runs):
    few, whole = runs("nih-chexpert", methods=("vanilla",), seeds=1)[::2]
    sites = {site: set(labelled) for site, labelled in few.what["sites"].items()}
    assert sites == {"nih": SHARED, "chexpert": SHARED}
    assert set(whole.what["sites"]["nih"]) == set(NIH_CLASSES)
    assert len(whole.what["union"]) == 20


def test_settings_are_those_of_the_whole_job_and_all_can_be_written(runs):
    how = {"scenarios": ("2",), "methods": ("surgical", "complete"), "seeds": 1}
    federated, alone, _ = runs("clients", **how)
    assert federated.what["settings"]["tracking"] == "none"
    assert federated.what["settings"]["min_clients"] == 2
    assert federated.rounds == alone.rounds == 2
    assert (federated.processes, alone.processes) == (2, 1)
    for run in (federated, alone):
        assert json.loads(json.dumps([run.what, run.where])) == [run.what, run.where]


def test_different_runs_have_different_keys_and_a_baseline_one_for_all_scenarios(runs):
    found = runs("clients", scenarios=("2", "3"), seeds=2)
    baselines = {run.key for run in found if run.row.method == "complete"}
    others = [run.key for run in found if run.row.method != "complete"]
    assert len(set(others)) == len(others) and len(baselines) == 4  # of each seed and batch norm
    alike = runs("shared-classes", scenarios=("0",), methods=("complete",), seeds=2)
    assert baselines == set(keys(alike))  # studies share the runs that they have in common


def test_settings_body_and_versions_change_the_key(runs, small_data, tmp_path, monkeypatch):
    save(study_data.stand_in(1.0), tmp_path / "other.npz")
    data, wanted = small_data.data, {"scenarios": ("2",), "seeds": 1}
    there = data_sets(data, ["nih", "mimic"], tmp_path / "data")
    moved = plan.runs(read_study("clients"), data, there, tmp_path, Selection(**wanted))
    found = [keys(runs("clients", **wanted))]
    assert keys(moved) == found[0]
    for change in (
        {"settings": {**data.settings, "learning_rate": 0.5}},
        {"settings": {**data.settings, "num_rounds": 3}},
        {"initial_body": tmp_path / "other.npz"},
    ):
        found.append(keys(runs("clients", change, **wanted)))
    monkeypatch.setattr(plan, "version", lambda name: "9")
    found.append(keys(runs("clients", **wanted)))
    assert len({key for each in found for key in each}) == 5 * len(found[0])


def test_sites_that_differ_have_the_published_classes_and_the_same_tests(runs):
    wanted = {"scenarios": ("even", "quantity 1", "labels 1"), "seeds": 1}
    found = runs("skew", methods=("vanilla",), **wanted)
    assert len({run.where["site_files"] for run in found}) == 3
    for run in found:
        assert list(map(tuple, run.what["sites"].values())) == list(class_sets.published(4))
        assert run.what["tests"] == found[0].what["tests"]


RATE = {"learning_rate": 0.5, "batch_size": 4}


def test_settings_for_one_site_are_a_part_of_the_runs_that_it_trains_in(runs):
    def found(per_site):
        methods = ("surgical", "individual", "centralised")
        wanted = {"scenarios": ("iid partial", "non-iid partial"), "methods": methods, "seeds": 1}
        made = runs("fedfbn", {"per_site": per_site}, **wanted)
        return {(run.scenario, run.row.method, run.row.strategy): run for run in made}

    before, after = found({}), found({"chexpert": RATE})
    for name, run in after.items():
        counts = name[0] == "non-iid partial" and name[1] != "centralised"
        assert run.what.get("per_site") == ({"chexpert": RATE} if counts else None)
        assert (run.key == before[name].key) != counts


def test_what_the_study_varies_wins_over_settings_for_one_site(runs):
    data = {"per_site": {"nih-1": {"learning_rate": 0.5}, "nih-2": RATE}}
    wanted = {"scenarios": ("2",), "methods": ("surgical",), "seeds": 1}
    for run in runs("clients-converged", data, **wanted):  # which sets the learning rate
        assert run.what["per_site"] == {"nih-2": {"batch_size": 4}}


@pytest.fixture
def given(small_data, tmp_path):
    """The runs of "methods" on copies of the data file's sites, changed before by a function."""

    def given(change=lambda sites: None, study="methods", folds=None, **selection):
        sites = tmp_path / "phantom/sites"
        if not sites.is_dir():
            shutil.copytree(small_data.home / "phantom", tmp_path / "phantom")
        change(sites)
        files = tuple(sites / f"{name}.yaml" for name in ("nih", "chexpert"))
        settings = small_data.data.settings
        data = StudyData.model_construct(sites=files, settings=settings, folds=folds)
        study = read_study(study).with_sites_of(data)
        wanted = Selection(methods=("surgical",), **selection)
        return plan.runs(study, data, {}, tmp_path / "out", wanted)

    return given


def test_a_given_site_is_tested_on_its_own_split_with_its_truth_for_every_seed(given, tmp_path):
    runs = given(scenarios=("equal rounds",), seeds=2)
    run = runs[0]
    assert run.where["sites"] == list(run.where["tests"]) == ["nih", "chexpert"]
    assert set(run.what["sites"]["nih"]) == set(NIH_CLASSES) and len(run.what["union"]) == 20
    for name, path in run.where["tests"].items():
        site = read_site_file(Path(path))
        assert site.truth == tmp_path / f"phantom/truth/{name}.csv"
        assert site.split == tmp_path / f"phantom/sites/{name}_split.csv"
    assert len({run.where["site_files"] for run in runs}) == 1
    assert len(set(keys(runs))) == len(runs)


def test_with_folds_each_seed_tests_patients_of_its_own_with_the_sites_truth(given, tmp_path):
    runs = given(scenarios=("equal rounds",), seeds=4, folds=3)
    of_seed = {run.seed: run.where["tests"] for run in runs}
    for name in ("nih", "chexpert"):
        sites = [read_site_file(Path(of_seed[seed][name])) for seed in range(4)]
        assert {site.truth for site in sites} == {tmp_path / f"phantom/truth/{name}.csv"}
        splits = [read_split(site.split).assignment for site in sites]
        tested = [set(each.loc[each["split"] == "test", "patient"]) for each in splits]
        assert tested[0] == tested[3] and set(splits[0]["patient"]) == set.union(*tested)
        assert sum(map(len, tested[:3])) == len(splits[0])


def test_folds_of_a_split_with_patients_of_other_sites_are_refused(given):
    def change(sites):
        path = sites / "nih_split.csv"
        rows = pd.read_csv(path, comment="#").assign(site="nih")
        rows[["patient", "site", "split"]].to_csv(path, index=False)

    assert given(change, scenarios=("equal rounds",), seeds=1)
    with pytest.raises(InputError, match=r"nih_split\.csv: folds need labels of the site's own"):
        given(scenarios=("equal rounds",), seeds=1, folds=3)


def test_a_scenario_says_classes_settings_methods_and_which_model(given):
    by_scenario = {run.scenario: run for run in given(seeds=1)}
    equal, early = by_scenario["equal rounds"], by_scenario["early stopping"]
    assert (equal.what["model"], equal.rounds) == ("last", 12)
    assert ("model" in early.what, early.rounds) == (False, 24)
    assert early.what["settings"]["patience"] == 4
    assert set(by_scenario["equal classes"].what["union"]) == SHARED


def test_at_equal_steps_pooled_data_have_larger_batches_and_federated_runs_are_the_same(runs):
    wanted = {"scenarios": ("4",), "methods": ("surgical", "centralised", "complete"), "seeds": 1}

    def found(name):
        return {run.row.name: run for run in runs(name, **wanted)}

    converged, equal = found("clients-converged"), found("clients-equal-steps")
    for name, run in equal.items():
        times = 4 if run.row.pooled else 1
        batch = converged[name].what["settings"]["batch_size"]
        assert run.what["settings"]["batch_size"] == times * batch
        assert (run.key == converged[name].key) == (times == 1)


def test_head_weightings_are_rows_that_share_the_mean_with_the_study_of_methods(given):
    runs = given(study="head-weightings", scenarios=("equal rounds",), seeds=1)
    weightings = [run.what["settings"]["head_weighting"] for run in runs]
    assert weightings == ["mean", "samples", "positives"]
    assert {run.what["settings"]["strategy"] for run in runs} == {"fedbn+"}
    assert [run.what["settings"]["report_counts"] for run in runs] == [False, False, True]
    assert [run.facts["strategy"] for run in runs] == [
        "fedbn+", "fedbn+ samples", "fedbn+ positives",
    ]  # fmt: skip
    shared = set(keys(runs)) & set(keys(given(scenarios=("equal rounds",), seeds=1)))
    assert shared == {runs[0].key}


@pytest.mark.parametrize("file", ["nih_split.csv", "../truth/nih.csv"])
def test_another_split_or_truth_is_another_run(given, file):
    def change(sites):
        (sites / file).write_text((sites / file).read_text() + "\n")

    wanted = {"scenarios": ("equal rounds",), "seeds": 1}
    assert not set(keys(given(**wanted))) & set(keys(given(change, **wanted)))


def test_without_a_class_in_common_there_is_no_run_of_common_classes(given):
    def change(sites):
        for name, labelled in (("nih", "Mass"), ("chexpert", "Fracture")):
            path = sites / f"{name}.yaml"
            output = yaml.safe_load(path.read_text()) | {"classes": [labelled]}
            path.write_text(yaml.safe_dump(output))

    assert "equal classes" not in {run.scenario for run in given(change, seeds=1)}
    with pytest.raises(InputError, match=r"\(scenarios equal classes; .*\) needs a class that all"):
        given(scenarios=("equal classes",), seeds=1)


def test_a_data_set_that_cannot_be_cut_so_is_refused_by_study_and_scenario(runs, found):
    few = {**found, "nih": dataclasses.replace(found["nih"], classes=("Edema", "Mass"))}
    with pytest.raises(InputError, match="study shared-classes, scenario '4': 4 sites need"):
        runs("shared-classes", found=few, scenarios=("4",), methods=("surgical",), seeds=1)


def test_needed_are_the_data_sets_of_the_selection_and_its_tests(small_data):
    small = small_data.data

    def check(study, sources=small.sources, settings=small.settings, per_site=(), **wanted):
        changed = {"data": sources, "settings": settings, "per_site": dict(per_site)}
        data = small.model_copy(update=changed)
        return plan.check(study, data, Selection(**wanted))

    clients = read_study("clients")
    assert check(read_study("fedfbn"), scenarios=("iid partial",)) == ("nih", "chexpert", "mimic")
    assert check(clients) == ("nih", "mimic")
    with pytest.raises(InputError, match="learning_rat"):
        check(clients, settings={**small_data.data.settings, "learning_rat": 1})
    with pytest.raises(InputError, match=r"'per_site', key 'chexpert': .*not in the job"):
        check(clients, per_site={"chexpert": RATE})
    check(read_study("fedfbn"), per_site={"chexpert": RATE}, scenarios=("iid partial",))
    # A test set may be missing, but not every one.
    alone = {"nih": small_data.data.sources["nih"]}
    assert check(clients, alone) == ("nih",)
    mimic = clients.model_copy(update={"tests": ("mimic",)})
    with pytest.raises(InputError, match=r"clients is tested on mimic; data file .* has nih"):
        check(mimic, alone)
    with pytest.raises(InputError, match=r"trains on chexpert; data file .*small\.yaml has nih"):
        check(read_study("nih-chexpert"), alone)
