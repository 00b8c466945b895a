"""A program of a few lines makes the runs; how they run side by side is in `test_side_by_side`."""

import json
import sys

import pytest

import study_runs
from cxr_study.runs.run_queue import DONE, KEPT, STARTS
from cxr_study.studies.plan.run_folder import LOG_FILE, write_result
from cxr_study.studies.runner import one_run, schedule
from cxr_study.studies.runner.machine import Machine

DO = 'shutil.copy(home / "result.json", folder); note("done")\n'

ONE_AT_A_TIME = Machine(cores=1, memory=1.0)


@pytest.fixture
def make(tmp_path, monkeypatch):
    """Make runs with a program in the place of the real one; the failures, and what was told."""

    def make(program, *runs, machine=ONE_AT_A_TIME):
        write_result(study_runs.RESULT, tmp_path)
        file = tmp_path / "program.py"
        file.write_text(
            "import shutil, sys, time\n"
            "from pathlib import Path\n"
            "folder, home = Path(sys.argv[1]), Path(__file__).parent\n"
            "def note(text):\n"
            '    with (home / "notes").open("a") as file: print(text, file=file)\n' + program
        )
        monkeypatch.setattr(schedule, "COMMAND", (sys.executable, str(file)))
        told = []
        failures = schedule.run_all(
            runs, tmp_path / "runs", machine, lambda *what: told.append(what)
        )
        return failures, told

    return make


def seeds(number):
    return [study_runs.run("complete", "fedavg", seed) for seed in range(number)]


def test_every_run_is_made_in_a_folder_named_by_its_key(make, tmp_path):
    runs = seeds(2)
    failures, told = make(DO, *runs)
    assert failures == []
    assert told == [(run, doing) for run in runs for doing in (STARTS, DONE)]
    assert {path.name for path in (tmp_path / "runs").iterdir()} == {run.key for run in runs}


def test_its_process_is_told_what_to_do_and_where(make, tmp_path):
    [run] = seeds(1)
    make(DO, run)
    spec = json.loads((tmp_path / "runs" / run.key / "run.json").read_text())
    assert spec == {"name": run.name, "what": run.what, "where": run.where}


def test_one_that_is_finished_is_not_made_again(make):
    one, other = seeds(2)
    make(DO, one)
    _, told = make(DO, one, other)
    assert told == [(one, KEPT), (other, STARTS), (other, DONE)]


def test_one_without_a_result_has_failed_and_left_its_log_and_is_made_the_next_time(make, tmp_path):
    [run] = seeds(1)
    [failure], _ = make('print("how so", file=sys.stderr)', run)
    assert (failure.training, failure.reason) == (run, "it left no result")
    assert failure.log == tmp_path / "runs" / run.key / LOG_FILE
    assert failure.log.read_text() == "how so\n"
    assert make(DO, run)[0] == []


@pytest.mark.parametrize(("memory", "at_once"), [(1.0, 1), (1e15, 3)])
def test_as_many_run_at_once_as_the_machine_has_room_for(make, tmp_path, memory, at_once):
    program = f"""
note("start")
for _ in range(200):
    if (home / "notes").read_text().count("start") >= {at_once}: break
    time.sleep(0.05)
time.sleep(0.3)
"""
    make(program + DO, *seeds(3), machine=Machine(99, memory))
    notes = (tmp_path / "notes").read_text().split()
    assert notes[: at_once + 1] == ["start"] * at_once + ["done"]


def test_a_run_is_made_by_the_module_for_one_run():
    assert schedule.COMMAND == (sys.executable, "-m", one_run.__name__)
