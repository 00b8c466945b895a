import dataclasses
import json

import pytest

from cxr_study import class_sets
from cxr_study.initial_body import InitialBodyError
from cxr_study.job_settings import JobError
from cxr_study.rows import Row
from cxr_study.studies import plan
from cxr_study.studies.plan import Selection, StudyError
from cxr_study.studies.study_file import read_study
from cxr_study.vocabulary import CHEXPERT_CLASSES, NIH_CLASSES

SHARED = set(NIH_CLASSES) & set(CHEXPERT_CLASSES)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("plan")


@pytest.fixture
def runs(small_data, folder):
    """The runs of a shipped study on the small data, some of the data file changed."""

    def runs(study, data=None, **selection):
        data = dataclasses.replace(small_data.data, **(data or {}))
        return plan.runs(read_study(study), data, folder, Selection(**selection))

    return runs


def keys(found):
    return [run.key for run in found]


class TestGrid:
    def test_every_setting_has_every_row_and_every_seed(self, runs):
        found = runs("clients", settings=("2", "4"), seeds=2)
        study = read_study("clients")
        assert [(run.seed, run.setting, run.row) for run in found] == [
            (seed, setting, row) for seed in (0, 1) for setting in ("2", "4") for row in study.rows
        ]

    def test_the_study_says_how_many_seeds(self, runs):
        found = runs("clients", settings=("2",), methods=("surgical",))
        assert [run.seed for run in found] == list(range(read_study("clients").seeds))

    def test_the_quick_form_has_some_settings(self, runs):
        found = runs("shared-classes", methods=("surgical",), seeds=1, quick=True)
        assert tuple(run.setting for run in found) == read_study("shared-classes").quick

    @pytest.mark.parametrize(
        ("wanted", "told"),
        [
            ({"settings": ("9",)}, "no setting '9'"),
            ({"methods": ("surgicle",)}, "no method 'surgicle'; nearest known: surgical"),
        ],
    )
    def test_what_the_study_does_not_have_is_refused(self, runs, wanted, told):
        with pytest.raises(StudyError, match=told):
            runs("clients", **wanted)

    def test_a_data_set_to_train_on_must_be_there(self, runs, small_data):
        sources = {"nih": small_data.data.sources["nih"]}
        with pytest.raises(StudyError, match="trains on chexpert; data file small has nih"):
            runs("nih-chexpert", {"sources": sources})

    def test_one_to_test_on_may_be_missing(self, runs, small_data):
        sources = {"nih": small_data.data.sources["nih"]}
        [run] = runs(
            "clients", {"sources": sources}, settings=("2",), methods=("vanilla",), seeds=1
        )
        assert list(run.where["tests"]) == ["nih"]


class TestRun:
    def test_no_federation_is_tracked(self, runs):
        [run] = runs("clients", settings=("2",), methods=("surgical",), seeds=1)
        assert run.what["knobs"]["tracking"] == "none"

    def test_the_published_class_sets_are_the_sites(self, runs):
        [run] = runs("clients", settings=("3",), methods=("surgical",), seeds=1)
        assert [tuple(held) for held in run.what["sites"].values()] == list(class_sets.published(3))
        assert run.where["sites"] == ["nih-1", "nih-2", "nih-3"]
        assert run.what["union"] == sorted(NIH_CLASSES)

    def test_the_fully_labelled_baseline_has_all_classes_in_one_place(self, runs):
        [run] = runs("clients", settings=("3",), methods=("complete",), seeds=1)
        assert run.where["sites"] == ["nih"]
        assert set(run.what["sites"]["nih"]) == set(NIH_CLASSES)

    def test_data_sets_that_are_sites_have_all_classes_or_those_of_both(self, runs):
        few, all_ = runs("nih-chexpert", methods=("vanilla",), seeds=1)[::2]
        assert {site: set(held) for site, held in few.what["sites"].items()} == {
            "nih": SHARED, "chexpert": SHARED,
        }  # fmt: skip
        assert set(all_.what["sites"]["nih"]) == set(NIH_CLASSES)
        assert len(all_.what["union"]) == 20

    def test_knobs_are_those_of_the_whole_job(self, runs):
        federated, solo = runs(
            "clients", settings=("2",), methods=("surgical", "complete"), seeds=1
        )
        assert federated.what["knobs"]["min_clients"] == 2
        assert federated.rounds == solo.rounds == 2
        assert (federated.processes, solo.processes) == (2, 1)

    def test_what_it_is_can_be_written(self, runs):
        [run] = runs("clients", settings=("2",), methods=("surgical",), seeds=1)
        assert json.loads(json.dumps([run.what, run.where])) == [run.what, run.where]


class TestKey:
    def test_the_same_run_has_the_same_key_in_another_folder(self, runs, small_data, tmp_path):
        wanted = {"settings": ("2",), "seeds": 1}
        elsewhere = plan.runs(read_study("clients"), small_data.data, tmp_path, Selection(**wanted))
        assert keys(runs("clients", **wanted)) == keys(elsewhere)

    def test_different_runs_have_different_ones(self, runs):
        found = runs("clients", settings=("2", "3"), seeds=2)
        baselines = [run for run in found if run.row.method == "complete"]
        others = [run for run in found if run.row.method != "complete"]
        assert len(set(keys(others))) == len(others)
        assert len(set(keys(baselines))) == 2  # one for each seed: settings do not change it

    def test_studies_share_the_runs_that_they_have_in_common(self, runs):
        wanted = {"methods": ("complete",), "seeds": 1}
        clients = runs("clients", settings=("2",), **wanted)
        assert keys(clients) == keys(runs("shared-classes", settings=("0",), **wanted))

    @pytest.mark.parametrize("knobs", [{"learning_rate": 0.5}, {"num_rounds": 3}])
    def test_a_knob_changes_it(self, runs, small_data, knobs):
        wanted = {"settings": ("2",), "seeds": 1}
        changed = runs("clients", {"knobs": {**small_data.data.knobs, **knobs}}, **wanted)
        assert not set(keys(changed)) & set(keys(runs("clients", **wanted)))

    def test_another_version_of_a_package_changes_it(self, runs, monkeypatch):
        wanted = {"settings": ("2",), "seeds": 1}
        before = keys(runs("clients", **wanted))
        monkeypatch.setattr(plan, "version", lambda name: "9")
        assert not set(before) & set(keys(runs("clients", **wanted)))

    def test_another_initial_body_changes_it(self, runs, tmp_path):
        from cxr_study.model import build, initial_body
        from surgical_aggregation.checkpoint import save

        save(initial_body(build("small_densenet", 1, image_size=32)), tmp_path / "other.npz")
        wanted = {"settings": ("2",), "seeds": 1}
        changed = keys(runs("clients", {"initial_body": tmp_path / "other.npz"}, **wanted))
        assert not set(changed) & set(keys(runs("clients", **wanted)))


class TestMistakes:
    def test_a_knob_that_no_job_has_is_refused_before_anything_runs(self, runs, small_data):
        with pytest.raises(JobError, match="learning_rat"):
            runs("clients", {"knobs": {**small_data.data.knobs, "learning_rat": 1}}, seeds=1)

    def test_also_where_only_rows_without_a_federation_are_wanted(self, runs, small_data):
        knobs = {**small_data.data.knobs, "learning_rat": 1}
        with pytest.raises(JobError, match="learning_rat"):
            runs("clients", {"knobs": knobs}, methods=("complete",), seeds=1)

    @pytest.mark.parametrize(
        ("own", "value"), [("strategy", "fedavg"), ("seed", 3), ("tracking", "tensorboard")]
    )
    def test_a_knob_that_is_the_studys_own_is_refused(self, runs, small_data, own, value):
        knobs = {**small_data.data.knobs, own: value}
        with pytest.raises(StudyError, match=f"sets the knob '{own}' itself"):
            runs("clients", {"knobs": knobs}, seeds=1)

    def test_an_initial_body_of_another_network_is_refused(self, runs, small_data):
        knobs = {**small_data.data.knobs, "backbone": "densenet121"}
        with pytest.raises(InitialBodyError, match="densenet121"):
            runs("clients", {"knobs": knobs}, seeds=1)


def test_rows_that_a_setting_lacks_are_left_out(runs):
    found = runs("fedfbn", seeds=1)
    assert {run.setting for run in found if run.row.method == "complete"} <= {
        "iid complete", "iid partial",
    }  # fmt: skip
    assert Row("surgical", "fedbn") in {run.row for run in found}
