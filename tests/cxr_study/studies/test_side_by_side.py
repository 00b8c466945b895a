import dataclasses
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from threading import Lock, active_count

import psutil
import pytest

import study_runs
from cxr_study.studies import one_run, side_by_side
from cxr_study.studies.machine import Machine
from cxr_study.studies.run_folder import write_result
from cxr_study.studies.side_by_side import DONE, FAILS, KEPT, STARTS, run_all

DO = 'shutil.copyfile(home / "made.json", folder / "result.json"); note("done")\n'
WAIT = 'note("start"); print("round 1", flush=True); time.sleep(60)\n'

ONE_AT_A_TIME = Machine(cores=1, memory=1.0)


@pytest.fixture
def make(tmp_path, monkeypatch):
    """Make runs with a program in the place of the real one; the failures."""

    def make(program, *runs, machine=ONE_AT_A_TIME, **arguments):
        write_result(study_runs.RESULT, tmp_path)
        (tmp_path / "result.json").rename(tmp_path / "made.json")
        file = tmp_path / "program.py"
        file.write_text(
            "import json, os, shutil, sys, time\n"
            "from pathlib import Path\n"
            "folder, home = Path(sys.argv[1]), Path(__file__).parent\n"
            'spec = json.loads((folder / "run.json").read_text())\n'
            'seed = spec["what"]["seed"]\n'
            "def note(text):\n"
            '    with (home / "notes").open("a") as file: print(seed, text, file=file)\n'
            + textwrap.dedent(program)
        )
        monkeypatch.setattr(side_by_side, "COMMAND", (sys.executable, str(file)))
        return run_all(runs, tmp_path / "runs", machine, **arguments)

    return make


def seeds(number):
    return [study_runs.run("complete", "fedavg", seed) for seed in range(number)]


def notes(home):
    path = home / "notes"
    return path.read_text().splitlines() if path.exists() else []


def processes(home):
    """Processes that run the program."""
    return [
        process.pid
        for process in psutil.process_iter(["cmdline"])
        if str(home / "program.py") in (process.info["cmdline"] or ())
    ]


def wait_until(true, seconds=60):
    began = time.monotonic()
    while not true():
        assert time.monotonic() - began < seconds
        time.sleep(0.05)


class TestRunAll:
    def test_every_run_is_made_in_order_in_a_folder_of_its_own(self, make, tmp_path):
        runs = seeds(3)
        assert make(DO, *runs) == []
        assert notes(tmp_path) == ["0 done", "1 done", "2 done"]
        assert {path.name for path in (tmp_path / "runs").iterdir()} == {run.key for run in runs}

    def test_its_process_is_told_what_to_do_and_where(self, make, tmp_path):
        [run] = seeds(1)
        make(DO, run)
        spec = json.loads((tmp_path / "runs" / run.key / "run.json").read_text())
        assert spec == {"name": run.name, "what": run.what, "where": run.where}

    def test_runs_with_the_same_key_are_made_once(self, make, tmp_path):
        [run] = seeds(1)
        told = []
        same = dataclasses.replace(run, setting="another")
        assert make(DO, run, same, told=lambda run, doing: told.append((run, doing))) == []
        assert notes(tmp_path) == ["0 done"]
        assert told == [(run, STARTS), (run, DONE)]

    def test_one_that_is_made_is_not_made_again(self, make, tmp_path):
        one, other = seeds(2)
        make(DO, one)
        told = []
        assert make(DO, one, one, other, told=lambda run, doing: told.append((run, doing))) == []
        assert notes(tmp_path) == ["0 done", "1 done"]
        assert told == [(one, KEPT), (other, STARTS), (other, DONE)]

    def test_how_far_one_is_can_be_followed(self, make):
        told = []
        program = 'print("noise"); print("round 1", flush=True); print("round 2")\n'
        make(program + DO, *seeds(1), told=lambda run, doing: told.append(doing))
        assert told == [STARTS, "round 1", "round 2", DONE]

    def test_the_code_that_runs_is_this_ones(self, make, tmp_path, monkeypatch):
        (tmp_path / "code").mkdir()
        (tmp_path / "code/only_here.py").touch()
        monkeypatch.syspath_prepend(tmp_path / "code")
        assert make("import only_here\n" + DO, *seeds(1)) == []


class TestFailures:
    def test_one_has_its_reason_and_stops_no_other(self, make, tmp_path):
        bad, good = runs = seeds(2)
        told = []
        program = 'if seed == 0: print("failed: no disk"); sys.exit(1)\n' + DO
        [failure] = make(program, *runs, told=lambda run, doing: told.append((run, doing)))
        assert (failure.run, failure.reason) == (bad, "no disk")
        assert told == [(bad, STARTS), (bad, FAILS), (good, STARTS), (good, DONE)]
        assert notes(tmp_path) == ["1 done"]

    def test_a_crash_is_one_with_its_log(self, make, tmp_path):
        [run] = seeds(1)
        [failure] = make("raise RuntimeError('kaboom')", run)
        assert failure.reason == "its process ended with code 1"
        assert failure.log.parent == tmp_path / "runs" / run.key
        assert "kaboom" in failure.log.read_text()

    def test_a_process_that_is_killed_is_one(self, make):
        [failure] = make("import signal; os.kill(os.getpid(), signal.SIGKILL)", *seeds(1))
        assert failure.reason == "its process ended with code -9"

    def test_a_run_without_a_result_is_one(self, make):
        [failure] = make("pass", *seeds(1))
        assert failure.reason == "it left no result"

    def test_one_is_made_anew_the_next_time_with_a_log_of_its_own(self, make, tmp_path):
        [failure] = make("raise RuntimeError('kaboom')", *seeds(1))
        assert make(DO, *seeds(1)) == []
        assert notes(tmp_path) == ["0 done"]
        assert failure.log.read_text() == ""

    def test_they_are_told_in_the_order_of_the_runs(self, make):
        runs = seeds(3)
        failures = make("time.sleep(1 - seed / 2); sys.exit(1)", *runs, machine=Machine(2, 1e15))
        assert [failure.run for failure in failures] == runs


@pytest.mark.parametrize(("cores", "at_once"), [(1, 1), (2, 3)])
def test_as_many_run_at_once_as_there_is_room_for_and_no_more(make, tmp_path, cores, at_once):
    make('note("start"); time.sleep(0.5)\n' + DO, *seeds(5), machine=Machine(cores, 1e15))
    running, most = 0, 0
    for line in notes(tmp_path):
        running += 1 if line.endswith("start") else -1
        most = max(most, running)
    assert most == at_once


def test_a_run_that_there_is_no_room_for_lets_smaller_ones_pass(make, tmp_path):
    small, large, last = (
        study_runs.run(method, seed=seed)
        for seed, method in enumerate(("complete", "surgical", "complete"))
    )
    program = """
        note("start")
        for _ in range(200):
            if seed != 0 or "2 done" in (home / "notes").read_text(): break
            time.sleep(0.05)
        """
    make(textwrap.dedent(program) + DO, small, large, last, machine=Machine(2, 4.5e9))
    assert [line for line in notes(tmp_path) if line.endswith("done")] == [
        "2 done", "0 done", "1 done",
    ]  # fmt: skip


class Interrupt:
    """Interrupts this process, as a terminal does, when so many runs have made a round."""

    def __init__(self, after):
        self.after = after
        self.heard = []
        self._lock = Lock()

    def __call__(self, run, doing):
        with self._lock:
            self.heard.append(doing)
            if doing.startswith("round"):
                self.after -= 1
                if self.after == 0:
                    os.kill(os.getpid(), signal.SIGINT)


class TestInterrupt:
    @pytest.fixture(autouse=True)
    def interruptible(self):
        """Also where the tests run in the background, where a shell has interrupts ignored."""
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        yield
        signal.signal(signal.SIGINT, before)

    def test_it_ends_what_runs_and_starts_no_more(self, make, tmp_path):
        began = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            make(WAIT, *seeds(5), machine=Machine(2, 1e15), told=Interrupt(after=3))
        assert time.monotonic() - began < 20
        assert sorted(notes(tmp_path)) == ["0 start", "1 start", "2 start"]
        assert processes(tmp_path) == []

    def test_what_was_made_before_stays_and_the_rest_is_made_the_next_time(self, make, tmp_path):
        with pytest.raises(KeyboardInterrupt):
            make(f"if seed == 1:\n    {WAIT}{DO}", *seeds(3), told=Interrupt(after=1))
        assert notes(tmp_path) == ["0 done", "1 start"]
        assert make(DO, *seeds(3)) == []
        assert notes(tmp_path) == ["0 done", "1 start", "1 done", "2 done"]

    def test_one_that_does_not_end_by_itself_is_killed(self, make, tmp_path, monkeypatch):
        monkeypatch.setattr(side_by_side, "_GRACE", 0.5)
        stubborn = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + WAIT
        with pytest.raises(KeyboardInterrupt):
            make(stubborn, *seeds(1), told=Interrupt(after=1))
        wait_until(lambda: processes(tmp_path) == [], seconds=5)

    def test_a_run_has_time_to_stop_what_it_has_started(self, make, tmp_path):
        told = "import signal; signal.signal(signal.SIGTERM, lambda *_: sys.exit())\n"
        careful = f"{told}try:\n    {WAIT}finally:\n    time.sleep(0.5); note('stopped')\n"
        with pytest.raises(KeyboardInterrupt):
            make(careful, *seeds(1), told=Interrupt(after=1))
        assert notes(tmp_path) == ["0 start", "0 stopped"]

    def test_a_run_that_it_ends_is_no_failure(self, make):
        told = Interrupt(after=1)
        threads = active_count()
        with pytest.raises(KeyboardInterrupt):
            make(WAIT, *seeds(1), told=told)
        wait_until(lambda: active_count() == threads)
        assert told.heard == [STARTS, "round 1"]

    def test_a_terminals_interrupt_reaches_a_run_as_one_request_to_end(self, make, tmp_path):
        """A second signal would cut short how a run ends its simulator."""
        make("note(os.getpgid(0) == os.getpid())\n" + DO, *seeds(1))
        assert notes(tmp_path) == ["0 True", "0 done"]


class TestParentKilled:
    """Nobody is left then who could end the runs."""

    @pytest.fixture
    def parent(self, tmp_path):
        """A process that makes runs with a program, which begins to train and waits."""
        (tmp_path / "program.py").write_text(
            "import sys, time\n"
            "from pathlib import Path\n"
            "from cxr_study.studies import one_run\n"
            "def run(folder, tell):\n"
            '    tell(1); (folder.parent / "runs").touch()\n'
            "    try: time.sleep(60)\n"
            '    finally: (folder.parent / "cleaned up").touch()\n'
            "one_run.run = run\n"
            "sys.exit(one_run.main(Path(sys.argv[1])))\n"
        )
        (tmp_path / "parent.py").write_text(
            "import sys\n"
            "from pathlib import Path\n"
            "from cxr_study.studies import side_by_side\n"
            "from cxr_study.studies.machine import Machine\n"
            "import study_runs\n"
            "home = Path(__file__).parent\n"
            'side_by_side.COMMAND = (sys.executable, str(home / "program.py"))\n'
            "side_by_side.run_all([study_runs.run()], home, Machine(1, 1.0))\n"
        )
        parent = subprocess.Popen([sys.executable, tmp_path / "parent.py"])
        yield parent
        parent.kill()
        parent.wait()

    def test_a_run_ends_with_the_process_that_started_it(self, parent, tmp_path):
        wait_until((tmp_path / "runs").exists)
        assert len(processes(tmp_path)) == 1
        parent.send_signal(signal.SIGKILL)
        parent.wait()
        wait_until(lambda: processes(tmp_path) == [])
        assert (tmp_path / "cleaned up").exists()


def test_a_run_is_made_by_the_module_for_one_run():
    assert side_by_side.COMMAND == (sys.executable, "-m", one_run.__name__)
