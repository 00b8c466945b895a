"""Programs of a few lines make the trainings, which are numbers."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from subprocess import PIPE
from threading import active_count

import psutil
import pytest

from cxr_study.runs import run_queue
from cxr_study.runs.run_queue import DONE, FAILS, KEPT, STARTS, Program, run_all

DO = '(home / f"{number}.made").touch(); note("done")\n'
WAIT = 'note("start"); print("round 1", flush=True); time.sleep(60)\n'


@pytest.fixture
def make(tmp_path):
    """Make trainings with a program; the failures."""

    def make(program, *trainings, at_once=1, told=lambda training, doing: None, **rules):
        file = tmp_path / "program.py"
        file.write_text(
            "import os, sys, time\n"
            "from pathlib import Path\n"
            "number, home = int(sys.argv[1]), Path(__file__).parent\n"
            "def note(text):\n"
            '    with (home / "notes").open("a") as file: print(number, text, file=file)\n'
            + textwrap.dedent(program)
        )
        given = {
            "prepare": lambda number: Program(
                [sys.executable, str(file), str(number)], tmp_path / f"{number}.log"
            ),
            "is_made": lambda number: (tmp_path / f"{number}.made").exists(),
            "has_room": lambda _, beside: len(beside) < at_once,
        }
        return run_all(trainings, **{**given, **rules}, told=told)

    return make


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


def test_each_is_prepared_and_made_in_order_once_and_can_be_followed(make, tmp_path, monkeypatch):
    (tmp_path / "code").mkdir()
    (tmp_path / "code/only_here.py").touch()  # the code that runs is this process's
    monkeypatch.syspath_prepend(tmp_path / "code")
    prepared, told = [], []

    def prepare(number):
        prepared.append((number, notes(tmp_path)))
        command = [sys.executable, tmp_path / "program.py", str(number)]
        return Program(command, tmp_path / f"{number}.log")

    say = 'import only_here; print("noise"); print("round 1", flush=True); print("round 2")\n'
    done = lambda *what: told.append(what)  # noqa: E731
    assert make(say + DO, 2, 0, prepare=prepare, told=done) == []
    assert notes(tmp_path) == ["2 done", "0 done"]
    assert prepared == [(2, []), (0, ["2 done"])]
    assert told[:4] == [(2, STARTS), (2, "round 1"), (2, "round 2"), (2, DONE)]
    told.clear()
    assert make(DO, 0, 1, told=done) == []
    assert notes(tmp_path) == ["2 done", "0 done", "1 done"]
    assert told == [(0, KEPT), (1, STARTS), (1, DONE)]


class TestFailures:
    @pytest.mark.parametrize(
        ("program", "reason", "logged"),
        [
            ('print("failed: no disk"); sys.exit(1)', "no disk", ""),
            ("raise RuntimeError('kaboom')", "its process ended with code 1", "kaboom"),
            ("os.kill(os.getpid(), 9)", "its process ended with code -9", ""),
            (DO + "sys.exit(3)", "its process ended with code 3", ""),  # after all is made
            ("pass", "it left no result", ""),
        ],
    )
    def test_one_has_its_reason_and_log_and_stops_no_other(
        self, make, tmp_path, program, reason, logged
    ):
        told = []
        program = f"if number == 0:\n{textwrap.indent(program, '    ')}\nelse:\n    {DO}"
        [failure] = make(program, 0, 1, told=lambda *what: told.append(what))
        assert (failure.training, failure.reason) == (0, reason)
        assert failure.log == tmp_path / "0.log" and logged in failure.log.read_text()
        assert told == [(0, STARTS), (0, FAILS), (1, STARTS), (1, DONE)]
        assert notes(tmp_path)[-1] == "1 done"

    def test_one_is_made_anew_the_next_time_with_a_log_of_its_own(self, make, tmp_path):
        [failure] = make("raise RuntimeError('kaboom')", 0)
        assert make(DO, 0) == []
        assert notes(tmp_path) == ["0 done"]
        assert failure.log.read_text() == ""

    def test_they_are_told_in_the_order_of_the_trainings(self, make):
        failures = make("time.sleep(1 - number / 2); sys.exit(1)", 0, 1, 2, at_once=3)
        assert [failure.training for failure in failures] == [0, 1, 2]


class TestRoom:
    @pytest.mark.parametrize("at_once", [1, 3])
    def test_as_many_run_at_once_as_there_is_room_for_and_no_more(self, make, tmp_path, at_once):
        program = f"""
            note("start")
            for _ in range(200):
                if (home / "notes").read_text().count("start") >= {at_once}: break
                time.sleep(0.05)
            time.sleep(0.3)
            """
        make(textwrap.dedent(program) + DO, *range(5), at_once=at_once)
        running = most = 0
        for line in notes(tmp_path):
            running += 1 if line.endswith("start") else -1
            most = max(most, running)
        assert most == at_once

    def test_a_training_that_there_is_no_room_for_lets_others_pass(self, make, tmp_path):
        program = """
            for _ in range(200):
                if number != 0 or "2 done" in (home / "notes").read_text(): break
                time.sleep(0.05)
            """
        (tmp_path / "notes").touch()
        room = lambda number, beside: not beside or (number, beside) == (2, [0])  # noqa: E731
        make(textwrap.dedent(program) + DO, 0, 1, 2, has_room=room)
        assert notes(tmp_path) == ["2 done", "0 done", "1 done"]


class Interrupt:
    """Interrupts this process, as a terminal does, when so many trainings have made a round."""

    def __init__(self, after):
        self.after = after
        self.heard = []

    def __call__(self, training, doing):
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
        began, told, threads = time.monotonic(), Interrupt(after=3), active_count()
        with pytest.raises(KeyboardInterrupt):
            make(WAIT, *range(5), at_once=3, told=told)
        assert time.monotonic() - began < 20
        assert sorted(notes(tmp_path)) == ["0 start", "1 start", "2 start"]
        assert processes(tmp_path) == []
        wait_until(lambda: active_count() <= threads)  # another test's may end meanwhile
        assert sorted(told.heard) == ["round 1"] * 3 + [STARTS] * 3  # and no failure

    def test_what_was_made_before_stays_and_the_rest_is_made_the_next_time(self, make, tmp_path):
        with pytest.raises(KeyboardInterrupt):
            make(f"if number == 1:\n    {WAIT}{DO}", 0, 1, 2, told=Interrupt(after=1))
        assert notes(tmp_path) == ["0 done", "1 start"]
        assert make(DO, 0, 1, 2) == []
        assert notes(tmp_path) == ["0 done", "1 start", "1 done", "2 done"]

    def test_one_that_does_not_end_by_itself_is_killed(self, make, tmp_path, monkeypatch):
        monkeypatch.setattr(run_queue, "_GRACE", 0.5)
        stubborn = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + WAIT
        with pytest.raises(KeyboardInterrupt):
            make(stubborn, 0, told=Interrupt(after=1))
        wait_until(lambda: processes(tmp_path) == [], seconds=5)

    def test_a_training_hears_of_it_once_and_has_time_to_stop_what_it_has_started(
        self, make, tmp_path
    ):
        """A second signal, a terminal's, would cut short how it ends its simulator."""
        told = "import signal; signal.signal(signal.SIGTERM, lambda *_: sys.exit())\n"
        told += "note(os.getpgid(0) == os.getpid())\n"
        careful = f"{told}try:\n    {WAIT}finally:\n    time.sleep(0.5); note('stopped')\n"
        with pytest.raises(KeyboardInterrupt):
            make(careful, 0, told=Interrupt(after=1))
        assert notes(tmp_path) == ["0 True", "0 start", "0 stopped"]


def test_a_training_ends_with_the_process_that_started_it(tmp_path):
    """Nobody is left who could end it, where that one was killed."""
    (tmp_path / "program.py").write_text(
        "import sys, time\n"
        "from pathlib import Path\n"
        "from cxr_study.runs import training_process\n"
        "home = Path(__file__).parent\n"
        "def train(tell):\n"
        "    try:\n"
        '        (home / "trains").touch()\n'
        "        time.sleep(600)\n"
        "    finally:\n"
        '        (home / "cleaned up").touch()\n'
        "sys.exit(training_process.main(train, ()))\n"
    )
    (tmp_path / "parent.py").write_text(
        "import sys\n"
        "from pathlib import Path\n"
        "from cxr_study.runs.run_queue import Program, run_all\n"
        "home = Path(__file__).parent\n"
        'program = Program([sys.executable, str(home / "program.py")], home / "log")\n'
        "run_all([0], prepare=lambda _: program, is_made=lambda _: False,\n"
        "        has_room=lambda *_: True, told=lambda *_: None)\n"
    )
    # Its own input goes on when it is killed.
    with subprocess.Popen([sys.executable, tmp_path / "parent.py"], stdin=PIPE) as parent:
        try:
            wait_until((tmp_path / "trains").exists)
            assert len(processes(tmp_path)) == 1
        finally:
            parent.kill()
    wait_until(lambda: processes(tmp_path) == [])
    assert (tmp_path / "cleaned up").exists()
