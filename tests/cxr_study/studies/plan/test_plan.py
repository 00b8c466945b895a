import dataclasses
import json
import shutil
from pathlib import Path

import pytest
import yaml

import study_data
from cxr_study.data.labels import class_sets
from cxr_study.data.labels.vocabulary import CHEXPERT_CLASSES, NIH_CLASSES
from cxr_study.data.sites.site_file import read_site_file
from cxr_study.studies.plan import plan
from cxr_study.studies.plan.data_file import DataFileError, StudyData
from cxr_study.studies.plan.data_sets import data_sets
from cxr_study.studies.plan.selection import Selection, StudyError
from cxr_study.studies.plan.study_file import read_study
from surgical_aggregation.checkpoints.checkpoint import save

PROJECT = Path(__file__).parents[4] / "poc/project.yml"
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

    def runs(study, data=None, project=None, **selection):
        data = small_data.data.model_copy(update=data or {})
        return plan.runs(read_study(study), data, found, folder, Selection(**selection), project)

    return runs


def keys(found):
    return [run.key for run in found]


class TestRun:
    def test_it_is_tested_on_the_data_sets_of_the_study_that_are_there(self, runs):
        [run] = runs("clients", scenarios=("2",), methods=("vanilla",), seeds=1)
        assert list(run.where["tests"]) == ["nih", "mimic"]

    @pytest.mark.parametrize(
        ("method", "project"), [("surgical", str(PROJECT)), ("centralised", None)]
    )
    def test_what_is_federated_is_made_in_the_poc_where_there_is_one(self, runs, method, project):
        [run] = runs("clients", project=PROJECT, scenarios=("2",), methods=(method,), seeds=1)
        assert run.where["project"] == project
        assert run.what.get("poc", False) == (project is not None)

    def test_the_published_class_sets_are_the_sites(self, runs):
        [run] = runs("clients", scenarios=("3",), methods=("surgical",), seeds=1)
        assert [tuple(labelled) for labelled in run.what["sites"].values()] == list(
            class_sets.published(3)
        )
        assert run.where["sites"] == ["nih-1", "nih-2", "nih-3"]
        assert run.what["union"] == sorted(NIH_CLASSES)
        [run] = runs("clients", scenarios=("3",), methods=("complete",), seeds=1)
        assert run.where["sites"] == ["nih"]  # the fully labelled baseline has all in one place
        assert set(run.what["sites"]["nih"]) == set(NIH_CLASSES)

    def test_data_sets_that_are_sites_have_all_classes_or_those_of_both(self, runs):
        few, all_ = runs("nih-chexpert", methods=("vanilla",), seeds=1)[::2]
        assert {site: set(labelled) for site, labelled in few.what["sites"].items()} == {
            "nih": SHARED, "chexpert": SHARED,
        }  # fmt: skip
        assert set(all_.what["sites"]["nih"]) == set(NIH_CLASSES)
        assert len(all_.what["union"]) == 20

    def test_settings_are_those_of_the_whole_job_and_all_can_be_written(self, runs):
        wanted = ("surgical", "complete")
        federated, alone = runs("clients", scenarios=("2",), methods=wanted, seeds=1)
        assert federated.what["settings"]["tracking"] == "none"
        assert federated.what["settings"]["min_clients"] == 2
        assert federated.rounds == alone.rounds == 2
        assert (federated.processes, alone.processes) == (2, 1)
        for run in (federated, alone):
            assert json.loads(json.dumps([run.what, run.where])) == [run.what, run.where]


class TestKey:
    def test_the_same_run_has_the_same_key_in_another_folder(self, runs, small_data, tmp_path):
        wanted = {"scenarios": ("2",), "seeds": 1}
        data = small_data.data
        elsewhere = plan.runs(
            read_study("clients"), data, data_sets(data, ["nih", "mimic"], tmp_path / "data"),
            tmp_path, Selection(**wanted),
        )  # fmt: skip
        assert keys(runs("clients", **wanted)) == keys(elsewhere)

    def test_different_runs_have_different_ones(self, runs):
        found = runs("clients", scenarios=("2", "3"), seeds=2)
        baselines = [run for run in found if run.row.method == "complete"]
        others = [run for run in found if run.row.method != "complete"]
        assert len(set(keys(others))) == len(others)
        assert len(set(keys(baselines))) == 2  # one for each seed: scenarios do not change it

    def test_studies_share_the_runs_that_they_have_in_common(self, runs):
        wanted = {"methods": ("complete",), "seeds": 1}
        clients = runs("clients", scenarios=("2",), **wanted)
        assert keys(clients) == keys(runs("shared-classes", scenarios=("0",), **wanted))

    def test_a_setting_a_body_and_a_version_of_a_package_change_it(
        self, runs, small_data, tmp_path, monkeypatch
    ):
        save(study_data.stand_in(1.0), tmp_path / "other.npz")
        wanted = {"scenarios": ("2",), "seeds": 1}
        found = [keys(runs("clients", **wanted))]
        for settings in ({"learning_rate": 0.5}, {"num_rounds": 3}):
            own = {"settings": {**small_data.data.settings, **settings}}
            found.append(keys(runs("clients", own, **wanted)))
        body = {"initial_body": tmp_path / "other.npz"}
        found.append(keys(runs("clients", body, **wanted)))
        monkeypatch.setattr(plan, "version", lambda name: "9")
        found.append(keys(runs("clients", **wanted)))
        assert len({key for each in found for key in each}) == 5 * len(found[0])


class TestGivenSites:
    """Studies on the sites of the data file, with splits and truth of their own."""

    @pytest.fixture
    def given(self, small_data, tmp_path):
        """The runs of "methods" on copies of the sites, written before by a function."""

        def given(change=lambda sites: None, study="methods", **selection):
            sites = tmp_path / "phantom/sites"
            if not sites.is_dir():
                shutil.copytree(small_data.home / "phantom", tmp_path / "phantom")
            change(sites)
            files = tuple(sites / f"{name}.yaml" for name in ("nih", "chexpert"))
            data = StudyData.model_construct(sites=files, settings=small_data.data.settings)
            study = read_study(study).on(data)
            wanted = Selection(methods=("surgical",), **selection)
            return plan.runs(study, data, {}, tmp_path / "out", wanted)

        return given

    def test_every_site_is_tested_on_its_own_split_with_its_truth(self, given, tmp_path):
        run = given(scenarios=("equal rounds",), seeds=1)[0]
        assert run.where["sites"] == list(run.where["tests"]) == ["nih", "chexpert"]
        assert set(run.what["sites"]["nih"]) == set(NIH_CLASSES) and len(run.what["union"]) == 20
        for name, path in run.where["tests"].items():
            site = read_site_file(Path(path))
            assert site.truth == tmp_path / f"phantom/truth/{name}.csv"
            assert site.split == tmp_path / f"phantom/sites/{name}_split.csv"

    def test_a_scenario_says_classes_settings_methods_and_which_model(self, given):
        by_scenario = {run.scenario: run for run in given(seeds=1)}
        equal, early = by_scenario["equal rounds"], by_scenario["early stopping"]
        assert (equal.what["model"], equal.rounds) == ("last", 12)
        assert ("model" in early.what, early.rounds) == (False, 24)
        assert early.what["settings"]["patience"] == 4
        assert set(by_scenario["equal classes"].what["union"]) == SHARED

    def test_head_weightings_are_rows_that_share_the_mean_with_the_study_of_methods(self, given):
        runs = given(study="head-weightings", scenarios=("equal rounds",), seeds=1)
        weightings = [run.what["settings"]["head_weighting"] for run in runs]
        assert weightings == ["mean", "samples", "positives"]
        assert {run.what["settings"]["strategy"] for run in runs} == {"fedbn+"}
        shared = set(keys(runs)) & set(keys(given(scenarios=("equal rounds",), seeds=1)))
        assert shared == {runs[0].key}

    def test_seeds_have_the_same_data_and_other_keys(self, given):
        runs = given(scenarios=("equal rounds",), seeds=2)
        assert len({run.where["site_files"] for run in runs}) == 1
        assert len(set(keys(runs))) == len(runs)

    @pytest.mark.parametrize("file", ["nih_split.csv", "../truth/nih.csv"])
    def test_another_split_or_truth_is_another_run(self, given, file):
        def change(sites):
            (sites / file).write_text((sites / file).read_text() + "\n")

        wanted = {"scenarios": ("equal rounds",), "seeds": 1}
        assert not set(keys(given(**wanted))) & set(keys(given(change, **wanted)))

    def test_without_a_class_in_common_there_is_no_run_of_common_classes(self, given):
        def change(sites):
            for name, labelled in (("nih", "Mass"), ("chexpert", "Fracture")):
                path = sites / f"{name}.yaml"
                path.write_text(
                    yaml.safe_dump(yaml.safe_load(path.read_text()) | {"classes": [labelled]})
                )

        assert "equal classes" not in {run.scenario for run in given(change, seeds=1)}
        with pytest.raises(
            StudyError, match=r"\(scenarios equal classes; .*\) needs a class that all"
        ):
            given(scenarios=("equal classes",), seeds=1)


def test_a_data_set_that_cannot_be_cut_so_is_refused_by_study_and_scenario(
    small_data, folder, found
):
    few = dataclasses.replace(found["nih"], classes=("Edema", "Mass"))
    wanted = Selection(scenarios=("4",), methods=("surgical",), seeds=1)
    with pytest.raises(StudyError, match="study shared-classes, scenario '4': 4 sites need"):
        plan.runs(
            read_study("shared-classes"), small_data.data, {**found, "nih": few}, folder, wanted
        )


@pytest.fixture
def checked(small_data):
    """Check a shipped study on the small data, some of the data file changed."""

    def checked(study, data=None, **selection):
        data = small_data.data.model_copy(update=data or {})
        return plan.check(read_study(study), data, Selection(**selection))

    return checked


def test_what_is_needed_are_the_data_sets_of_the_selection_and_its_tests(checked, small_data):
    assert checked("fedfbn", scenarios=("iid partial",)) == ("nih", "chexpert", "mimic")
    assert checked("clients") == ("nih", "mimic")
    with pytest.raises(StudyError, match="no scenario '9'"):
        checked("clients", scenarios=("9",))
    with pytest.raises(DataFileError, match="learning_rat"):
        checked("clients", {"settings": {**small_data.data.settings, "learning_rat": 1}})


def test_one_to_test_on_may_be_missing_but_not_every_one_nor_one_to_train_on(checked, small_data):
    sources = {"nih": small_data.data.sources["nih"]}
    with pytest.raises(StudyError, match=r"trains on chexpert; data file .*small\.yaml has nih"):
        checked("nih-chexpert", {"data": sources})
    assert checked("clients", {"data": sources}) == ("nih",)
    mimic = read_study("clients").model_copy(update={"tests": ("mimic",)})
    data = small_data.data.model_copy(update={"data": sources})
    with pytest.raises(StudyError, match=r"clients is tested on mimic; data file .* has nih"):
        plan.check(mimic, data, Selection())
