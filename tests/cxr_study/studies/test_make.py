"""What of some studies is made; real runs are in tests/simulator and tests/poc."""

import io
from types import SimpleNamespace

import pytest
from rich.console import Console

import study_runs
from cxr_study.side_by_side import DONE, FAILS, STARTS, Failure
from cxr_study.studies import make as module
from cxr_study.studies.machine import Machine
from cxr_study.studies.plan import Selection, StudyError


@pytest.fixture
def make(monkeypatch, tmp_path):
    """Make studies of given runs, {study: runs}; those of seed 9 fail."""

    def make(studies, out="out"):
        made = []

        def run_all(runs, folder, machine, told):
            made.extend((run, folder) for run in runs)
            failures = [Failure(run, "no disk.", folder) for run in runs if run.seed == 9]
            for run in runs:
                told(run, STARTS)
                told(run, FAILS if run.seed == 9 else DONE)
            return failures

        monkeypatch.setattr(module.plan, "runs", lambda study, *_: studies[study.name])
        monkeypatch.setattr(module.schedule, "run_all", run_all)
        shown = io.StringIO()
        result = module.make(
            [SimpleNamespace(name=name) for name in studies],
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


def test_a_folder_that_flare_cannot_work_in_is_refused(make):
    with pytest.raises(StudyError, match="without spaces in its path"):
        make({"clients": []}, out="my out")
