"""What of some studies is made; real runs are in tests/simulator and tests/poc.

How runs go side by side is in `test_run_queue`.
"""

import io
import json
import sys
from types import SimpleNamespace

import pytest
from rich.console import Console

import study_runs
from cxr_study.runs.run_queue import DONE, FAILS, KEPT, STARTS, Failure
from cxr_study.studies.plan.run_folder import FOLDERS, LOG_FILE, RUNS, write_result
from cxr_study.studies.plan.selection import Selection, StudyError
from cxr_study.studies.runner import one_run
from cxr_study.studies.runner import run_study as module
from cxr_study.studies.runner.machine_capacity import Machine


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
        monkeypatch.setattr(module, "run_all", run_all)
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


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"names": ["clients", "clients"]}, "two are called 'clients'"),
        *(({"names": [name]}, f"another name than '{name}'") for name in FOLDERS),
        ({"out": "file"}, "need a folder; .*/file is a file"),
        ({"out": "file/below"}, "need a folder; .*/file is a file"),
        ({"out": "my out"}, "without spaces in its path"),
    ],
)
def test_what_cannot_be_made_is_refused_before_anything_is_done(
    make, tmp_path, happened, how, message
):
    (tmp_path / "file").touch()
    with pytest.raises(StudyError, match=message):
        make({"clients": []}, **how)
    assert happened == []


DO = 'shutil.copy(home / "result.json", folder); note("done")\n'

ONE_AT_A_TIME = Machine(cores=1, memory=1.0)


@pytest.fixture
def run_all(tmp_path, monkeypatch):
    """Make runs with a program in the place of the real one; the failures, and what was told."""

    def run_all(program, *runs, machine=ONE_AT_A_TIME):
        write_result(study_runs.RESULT, tmp_path)
        file = tmp_path / "program.py"
        file.write_text(
            "import shutil, sys, time\n"
            "from pathlib import Path\n"
            "folder, home = Path(sys.argv[1]), Path(__file__).parent\n"
            "def note(text):\n"
            '    with (home / "notes").open("a") as file: print(text, file=file)\n' + program
        )
        monkeypatch.setattr(module, "COMMAND", (sys.executable, str(file)))
        told = []
        failures = module.run_all(runs, tmp_path / "runs", machine, lambda *what: told.append(what))
        return failures, told

    return run_all


def seeds(number):
    return [study_runs.run("complete", "fedavg", seed) for seed in range(number)]


def test_every_run_is_made_in_a_folder_named_by_its_key_and_told_what_to_do(run_all, tmp_path):
    runs = seeds(2)
    failures, told = run_all(DO, *runs)
    assert failures == []
    assert told == [(run, doing) for run in runs for doing in (STARTS, DONE)]
    for run in runs:
        spec = json.loads((tmp_path / "runs" / run.key / "run.json").read_text())
        assert spec == {"name": run.name, "what": run.what, "where": run.where}


def test_one_that_is_finished_is_not_made_again(run_all):
    one, other = seeds(2)
    run_all(DO, one)
    _, told = run_all(DO, one, other)
    assert told == [(one, KEPT), (other, STARTS), (other, DONE)]


def test_one_without_a_result_has_failed_and_left_its_log_and_is_made_the_next_time(
    run_all, tmp_path
):
    [run] = seeds(1)
    [failure], _ = run_all('print("how so", file=sys.stderr)', run)
    assert (failure.training, failure.reason) == (run, "it left no result")
    assert failure.log == tmp_path / "runs" / run.key / LOG_FILE
    assert failure.log.read_text() == "how so\n"
    assert run_all(DO, run)[0] == []


@pytest.mark.parametrize(("memory", "at_once"), [(1.0, 1), (1e15, 3)])
def test_as_many_run_at_once_as_the_machine_has_room_for(run_all, tmp_path, memory, at_once):
    program = f"""
note("start")
for _ in range(200):
    if (home / "notes").read_text().count("start") >= {at_once}: break
    time.sleep(0.05)
time.sleep(0.3)
"""
    run_all(program + DO, *seeds(3), machine=Machine(99, memory))
    notes = (tmp_path / "notes").read_text().split()
    assert notes[: at_once + 1] == ["start"] * at_once + ["done"]


def test_a_run_is_made_by_the_module_for_one_run():
    assert module.COMMAND == (sys.executable, "-m", one_run.__name__)
