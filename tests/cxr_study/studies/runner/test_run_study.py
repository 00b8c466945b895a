"""Which runs of studies are made, and how; real runs are in tests/simulator and tests/poc.

How runs go side by side is in `test_run_queue`.
"""

import io
import json
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest
from rich.console import Console

import study_runs
from cxr_study.runs.run_queue import DONE, FAILS, KEPT, STARTS, Failure
from cxr_study.studies.plan.run_folder import FOLDERS, LOG_FILE, RUNS, write_result
from cxr_study.studies.plan.selection import Selection, StudyError
from cxr_study.studies.runner import run_study as module
from cxr_study.studies.runner.machine_capacity import Machine


@pytest.fixture
def happened():
    """What has been done, in order."""
    return []


@pytest.fixture
def make(monkeypatch, tmp_path, happened):
    """Make studies of given runs, {study: runs}; those of seed 9 fail."""

    def make(studies, out="out", names=None):
        def step(owner, name, told, result=lambda first: None):
            def called(*given):
                happened.append(told(*given))
                return result(given[0])

            monkeypatch.setattr(owner, name, called)

        def run_all(runs, folder, machine, told):
            happened.append((folder, sorted(run.seed for run in runs)))
            for run in runs:
                told(run, STARTS)
                told(run, FAILS if run.seed == 9 else DONE)
            return [Failure(run, "no disk.", folder) for run in runs if run.seed == 9]

        step(module.plan, "check", lambda study, *_: study.name, lambda study: (study.name, "nih"))
        step(module, "data_sets", lambda data, needed, folder: f"read {', '.join(needed)}")
        step(module.plan, "runs", lambda study, *_: study.name, lambda study: studies[study.name])
        step(module, "decode", lambda found, runs, folder, size: f"decode {size}")
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
        return result, shown.getvalue()

    return make


def test_runs_with_the_same_key_are_made_once_after_all_studies_are_checked(
    make, happened, tmp_path
):
    failing = study_runs.run(seed=9)
    studies = {
        "a": [study_runs.run(seed=0), study_runs.run(seed=0), study_runs.run(seed=1)],
        "b": [study_runs.run(seed=1), failing],
    }
    (tmp_path / "out" / RUNS / failing.key).mkdir(parents=True)
    write_result(study_runs.RESULT, tmp_path / "out" / RUNS / failing.key)
    result, shown = make(studies)
    runs = (tmp_path / "out/runs", [0, 1, 9])
    assert happened == ["a", "b", "read a, nih, b", "a", "b", "decode 32", runs]
    assert result.runs == studies
    assert [failure.training for failure in result.failures] == [failing]
    assert shown.splitlines()[0] == "3 runs: 1 made before, 2 begin now."
    assert "failed after" in shown and "done after" in shown and "3 of 3 runs" in shown


@pytest.mark.parametrize(("how", "message"), [
    ({"names": ["clients", "clients"]}, "two are called 'clients'"),
    *(({"names": [name]}, f"another name than '{name}'") for name in FOLDERS),
    ({"out": "file"}, "need a folder; .*/file is a file"),
    ({"out": "file/below"}, "need a folder; .*/file is a file"),
    ({"out": "my out"}, "without spaces in its path"),
])  # fmt: skip
def test_unusable_names_and_folders_are_refused_before_anything_is_done(
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
    """Make runs with a stand-in for their program; returns the failures and what was told."""

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


def test_every_run_is_made_once_in_a_folder_of_its_own_and_told_what_to_do(run_all, tmp_path):
    one, other = seeds(2)
    assert run_all(DO, one) == ([], [(one, STARTS), (one, DONE)])
    assert run_all(DO, one, other) == ([], [(one, KEPT), (other, STARTS), (other, DONE)])
    for run in (one, other):
        spec = json.loads((tmp_path / "runs" / run.key / "run.json").read_text())
        assert spec == {"name": run.name, "what": run.what, "where": run.where}


def test_one_without_a_result_has_failed_left_its_log_and_is_made_the_next_time(run_all, tmp_path):
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


def test_why_a_process_failed_is_one_line_and_exit_code_1(tmp_path):
    read, write = os.pipe()  # it ends when its standard input does
    try:
        done = subprocess.run(
            [*module.COMMAND, tmp_path], stdin=read, capture_output=True, text=True
        )
    finally:
        os.close(read)
        os.close(write)
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.startswith("failed: ") and str(tmp_path / "run.json") in done.stdout
