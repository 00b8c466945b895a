"""What of some studies is made; real runs are in tests/simulator and tests/poc."""

import io
from types import SimpleNamespace

import pytest
from rich.console import Console

import study_runs
from cxr_study.runs.run_queue import DONE, FAILS, STARTS, Failure
from cxr_study.studies.plan.run_folder import RUNS, write_result
from cxr_study.studies.plan.selection import Selection, StudyError
from cxr_study.studies.runner import make as module
from cxr_study.studies.runner.machine import Machine


@pytest.fixture
def happened():
    """What has been done before the runs begin."""
    return []


@pytest.fixture
def make(monkeypatch, tmp_path, happened):
    """Make studies of given runs, {study: runs}; those of seed 9 fail."""

    def make(studies, out="out", names=None):
        made = []

        def run_all(runs, folder, machine, told):
            made.extend((run, folder) for run in runs)
            failures = [Failure(run, "no disk.", folder) for run in runs if run.seed == 9]
            for run in runs:
                told(run, STARTS)
                told(run, FAILS if run.seed == 9 else DONE)
            return failures

        def check(study, *_):
            happened.append(f"check {study.name}")
            return study.name, "nih"

        def read(data, needed, folder):
            happened.append(f"read {', '.join(needed)}")

        def plan(study, *_):
            happened.append(f"plan {study.name}")
            return studies[study.name]

        monkeypatch.setattr(module.plan, "check", check)
        monkeypatch.setattr(module, "data_sets", read)
        monkeypatch.setattr(module.plan, "runs", plan)
        monkeypatch.setattr(
            module, "decode", lambda found, runs, folder, size: happened.append(f"decode {size}")
        )
        monkeypatch.setattr(module.schedule, "run_all", run_all)
        shown = io.StringIO()
        result = module.make(
            [SimpleNamespace(name=name) for name in names or studies],
            None,
            tmp_path / out,
            Selection(),
            machine=Machine(cores=1, memory=1.0),
            console=Console(file=shown),
        )
        return made, result, shown.getvalue()

    return make


def test_runs_with_the_same_key_are_made_once_and_each_study_has_them(make, tmp_path):
    studies = {
        "clients": [study_runs.run(seed=0), study_runs.run(seed=0), study_runs.run(seed=1)],
        "classes": [study_runs.run(seed=1), study_runs.run(seed=2)],
    }
    made, result, shown = make(studies)
    assert sorted(run.seed for run, _ in made) == [0, 1, 2]
    assert {folder for _, folder in made} == {tmp_path / "out/runs"}
    assert result.runs == studies
    assert "3 of 3 runs" in shown


def test_failures_are_told_and_kept(make):
    failed = study_runs.run(seed=9)
    _, result, shown = make({"clients": [failed, study_runs.run()]})
    assert [failure.training for failure in result.failures] == [failed]
    assert "failed after" in shown and "done after" in shown


def test_every_study_is_checked_before_any_data_are_read_and_images_decoded_last(make, happened):
    make({"a": [study_runs.run(seed=0)], "b": [study_runs.run(seed=1)]})
    assert happened == ["check a", "check b", "read a, nih, b", "plan a", "plan b", "decode 32"]


def test_how_many_runs_there_are_and_are_made_is_said_before_they_begin(make, tmp_path):
    runs = [study_runs.run(seed=seed) for seed in range(3)]
    (tmp_path / "out" / RUNS / runs[1].key).mkdir(parents=True)
    write_result(study_runs.RESULT, tmp_path / "out" / RUNS / runs[1].key)
    _, _, shown = make({"clients": runs})
    assert shown.splitlines()[0] == "3 runs: 1 made before, 2 begin now."


def test_two_studies_of_the_same_name_are_refused(make, happened):
    with pytest.raises(StudyError, match="two are called 'clients'"):
        make({"clients": []}, names=["clients", "clients"])
    assert happened == []


@pytest.mark.parametrize("name", ["runs", "test_sets", "data", "sites"])
def test_a_study_with_the_name_of_the_runners_own_folder_is_refused(make, name):
    with pytest.raises(StudyError, match=f"another name than '{name}'"):
        make({name: []})


@pytest.mark.parametrize("out", ["file", "file/below"])
def test_a_file_in_the_place_of_the_folder_is_refused(make, tmp_path, out):
    (tmp_path / "file").touch()
    with pytest.raises(StudyError, match=r"need a folder; .*/file is a file"):
        make({"clients": []}, out=out)


def test_a_folder_that_flare_cannot_work_in_is_refused(make):
    with pytest.raises(StudyError, match="without spaces in its path"):
        make({"clients": []}, out="my out")
