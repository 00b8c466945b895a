"""Programs of a few lines make the trainings, which are numbers."""

import os
import signal
import sys
import textwrap
import time
from threading import active_count

import psutil
import pytest

from cxr_study.runs import run_queue
from cxr_study.runs.run_queue import DONE, FAILS, KEPT, STARTS, Program, run_all

BEGINNING = """
import os, signal, stat, sys, time
from pathlib import Path
number, home = int(sys.argv[1]), Path(__file__).parent
def note(text):
    with (home / "notes").open("a") as file: print(number, text, file=file)
def wait_for(text, times=1):
    for _ in range(200):
        if (home / "notes").read_text().count(text) >= times: break
        time.sleep(0.05)
"""
DO = '(home / f"{number}.made").touch(); note("done")\n'
WAIT = 'note("start"); print("round 1", flush=True); time.sleep(60)\n'


@pytest.fixture
def make(tmp_path):
    """Make trainings with a program; the failures."""

    def make(program, *trainings, at_once=1, told=lambda training, doing: None, **rules):
        file = tmp_path / "program.py"
        file.write_text(BEGINNING + textwrap.dedent(program))

        def prepare(number):
            make.prepared.append((number, notes(tmp_path)))
            return Program([sys.executable, str(file), str(number)], tmp_path / f"{number}.log")

        given = {
            "prepare": prepare,
            "is_made": lambda number: (tmp_path / f"{number}.made").exists(),
            "has_room": lambda _, beside: len(beside) < at_once,
        }
        return run_all(trainings, **{**given, **rules}, told=told)

    (tmp_path / "notes").touch()
    make.prepared = []  # trainings, and the notes until then
    return make


def notes(home):
    return (home / "notes").read_text().splitlines()


def processes(home):
    """Processes that run the program."""
    found = psutil.process_iter(["cmdline"])
    return [each for each in found if str(home / "program.py") in (each.info["cmdline"] or ())]


def wait_until(true, seconds=60):
    began = time.monotonic()
    while not true():
        assert time.monotonic() - began < seconds
        time.sleep(0.05)


def test_each_is_prepared_and_made_in_order_once_and_can_be_followed(make, tmp_path, monkeypatch):
    (tmp_path / "code").mkdir()
    (tmp_path / "code/only_here.py").touch()  # the code that runs is this process's
    monkeypatch.syspath_prepend(tmp_path / "code")
    told = []
    say = 'import only_here; print("noise"); print("round 1", flush=True); print("round 2")\n'
    done = lambda *what: told.append(what)  # noqa: E731
    assert make(say + DO, 2, 0, told=done) == []
    assert notes(tmp_path) == ["2 done", "0 done"]
    assert make.prepared == [(2, []), (0, ["2 done"])]
    assert told[:4] == [(2, STARTS), (2, "round 1"), (2, "round 2"), (2, DONE)]
    told.clear()
    assert make(DO, 0, 1, told=done) == []
    assert notes(tmp_path) == ["2 done", "0 done", "1 done"]
    assert told == [(0, KEPT), (1, STARTS), (1, DONE)]


@pytest.mark.parametrize(("program", "reason", "logged"), [
    ('print("failed: no disk"); sys.exit(1)', "no disk", ""),
    ("raise RuntimeError('kaboom')", "its process ended with code 1", "kaboom"),
    ("os.kill(os.getpid(), 9)", "its process ended with code -9", ""),
    (DO + "sys.exit(3)", "its process ended with code 3", ""),  # after all is made
    ("pass", "it left no result", ""),
])  # fmt: skip
def test_a_failure_has_its_reason_and_log_stops_no_other_and_is_made_anew_the_next_time(
    make, tmp_path, program, reason, logged
):
    told = []
    program = f"if number == 0:\n{textwrap.indent(program, '    ')}\nelse:\n    {DO}"
    [failure] = make(program, 0, 1, told=lambda *what: told.append(what))
    assert (failure.training, failure.reason) == (0, reason)
    assert failure.log == tmp_path / "0.log" and logged in failure.log.read_text()
    assert told == [(0, STARTS), (0, FAILS), (1, STARTS), (1, DONE)]
    assert notes(tmp_path)[-1] == "1 done"
    if logged:
        assert make(DO, 0, 1) == [] and notes(tmp_path)[-1] == "0 done"
        assert failure.log.read_text() == ""


def test_failures_are_told_in_the_order_of_the_trainings(make):
    failures = make("time.sleep(1 - number / 2); sys.exit(1)", 0, 1, 2, at_once=3)
    assert [failure.training for failure in failures] == [0, 1, 2]


@pytest.mark.parametrize("at_once", [1, 3])
def test_as_many_run_at_once_as_there_is_room_for_and_no_more(make, tmp_path, at_once):
    program = f'note("start"); wait_for("start", {at_once}); time.sleep(0.3)\n'
    make(program + DO, *range(5), at_once=at_once)
    running = most = 0
    for line in notes(tmp_path):
        running += 1 if line.endswith("start") else -1
        most = max(most, running)
    assert most == at_once


def test_a_training_that_there_is_no_room_for_lets_others_pass(make, tmp_path):
    room = lambda number, beside: not beside or (number, beside) == (2, [0])  # noqa: E731
    make('if number == 0: wait_for("2 done")\n' + DO, 0, 1, 2, has_room=room)
    assert notes(tmp_path) == ["2 done", "0 done", "1 done"]


class TestInterrupt:
    @pytest.fixture(autouse=True)
    def interruptible(self):
        """Also where the tests run in the background, where a shell has interrupts ignored."""
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        yield
        signal.signal(signal.SIGINT, before)

    @pytest.fixture
    def interrupted(self, make):
        """Interrupts trainings, as a terminal does, after so many rounds; what was told."""

        def interrupted(program, *trainings, after=1, **rules):
            heard = []

            def told(training, doing):
                heard.append(doing)
                if heard.count("round 1") == after and doing == "round 1":
                    os.kill(os.getpid(), signal.SIGINT)

            with pytest.raises(KeyboardInterrupt):
                make(program, *trainings, told=told, **rules)
            return heard

        return interrupted

    def test_it_ends_what_runs_and_starts_no_more(self, interrupted, tmp_path):
        began, threads = time.monotonic(), active_count()
        heard = interrupted(WAIT, *range(5), at_once=3, after=3)
        assert time.monotonic() - began < 20
        assert sorted(notes(tmp_path)) == ["0 start", "1 start", "2 start"]
        assert processes(tmp_path) == []
        wait_until(lambda: active_count() <= threads)  # another test's may end meanwhile
        assert sorted(heard) == ["round 1"] * 3 + [STARTS] * 3  # and no failure

    def test_what_was_made_before_stays_and_the_rest_is_made_the_next_time(
        self, interrupted, make, tmp_path
    ):
        interrupted(f"if number == 1:\n    {WAIT}{DO}", 0, 1, 2)
        assert notes(tmp_path) == ["0 done", "1 start"]
        assert make(DO, 0, 1, 2) == []
        assert notes(tmp_path) == ["0 done", "1 start", "1 done", "2 done"]

    def test_one_that_does_not_end_by_itself_is_killed(self, interrupted, tmp_path, monkeypatch):
        monkeypatch.setattr(run_queue, "_GRACE", 0.5)
        interrupted("signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + WAIT, 0)
        wait_until(lambda: processes(tmp_path) == [], seconds=5)

    def test_a_training_hears_of_it_once_and_has_time_to_stop_what_it_has_started(
        self, interrupted, tmp_path
    ):
        """A second signal, a terminal's, would cut short how it ends its simulator.

        Its input is a pipe, which ends with this process: see `training_process`.
        """
        told = "signal.signal(signal.SIGTERM, lambda *_: sys.exit())\n"
        told += "note((os.getpgid(0) == os.getpid(), stat.S_ISFIFO(os.fstat(0).st_mode)))\n"
        interrupted(f"{told}try:\n    {WAIT}finally:\n    time.sleep(0.5); note('stopped')\n", 0)
        assert notes(tmp_path) == ["0 (True, True)", "0 start", "0 stopped"]
