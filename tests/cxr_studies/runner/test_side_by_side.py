"""Programs of a few lines make the runs."""

import io
import json
import os
import re
import signal
import subprocess
import sys
from threading import active_count
from types import SimpleNamespace

import psutil
import pytest
from rich.console import Console

import study_runs
from cxr_studies.plan.run_folder import LOG_FILE, write_result
from cxr_studies.runner import side_by_side
from cxr_studies.runner.side_by_side import parallel_runs, progress_text, run_all

RUNS = [study_runs.run("complete", "fedavg", seed, "[bold]2[/bold]") for seed in range(5)]
BEGINNING = """
import json, os, shutil, signal, stat, sys, time
from pathlib import Path
folder, home = Path(sys.argv[1]), Path(__file__).parent
seed = json.loads((folder / "run.json").read_text())["what"]["seed"]
def note(text):
    with (home / "notes").open("a") as file: print(seed, text, file=file)
def wait_for(text, times):
    for _ in range(2000):
        if (home / "notes").read_text().count(text) >= times: break
        time.sleep(0.05)
"""
MAKE = 'shutil.copy(home / "result.json", folder); note("made")\n'


@pytest.fixture
def make(tmp_path, monkeypatch):
    """Make runs with a program; the failures, and what is shown, line by line."""

    def make(program, *runs, at_once=1, terminal=False):
        (tmp_path / "program.py").write_text(BEGINNING + program)
        shown = io.StringIO()
        console = Console(file=shown, force_terminal=terminal, no_color=True, width=120)
        failures = run_all(runs, tmp_path / "runs", at_once, console)
        return failures, shown.getvalue().splitlines()

    write_result(study_runs.RESULT, tmp_path)
    (tmp_path / "notes").touch()
    monkeypatch.setattr(side_by_side, "COMMAND", (sys.executable, str(tmp_path / "program.py")))
    return make


def notes(home):
    return (home / "notes").read_text().splitlines()


def test_each_is_made_in_order_once_in_a_folder_of_its_own(make, tmp_path, monkeypatch):
    (tmp_path / "code").mkdir()
    (tmp_path / "code/only_here.py").touch()  # the code that runs is this process's
    monkeypatch.syspath_prepend(tmp_path / "code")
    failures, [first, second] = make("import only_here; print('noise')\n" + MAKE, RUNS[2], RUNS[0])
    assert not failures and notes(tmp_path) == ["2 made", "0 made"]
    name, left = r"\[bold\]2\[/bold\], complete-fedavg, seed", r"about \d+\.\d s left"
    assert re.fullmatch(rf"done after \d+\.\d s: {name} 2\. 1 of 2 runs, {left}", first)
    assert re.fullmatch(rf"done after \d+\.\d s: {name} 0\. 2 of 2 runs", second)
    failures, [line] = make(MAKE, *RUNS[:2])
    assert not failures and notes(tmp_path) == ["2 made", "0 made", "1 made"]
    assert line.endswith("seed 1. 2 of 2 runs, 1 made before")
    assert make(MAKE, *RUNS[:3]) == ([], [])
    for run in RUNS[:3]:
        spec = json.loads((tmp_path / "runs" / run.key / "run.json").read_text())
        assert spec == {"name": run.name, "what": run.what, "where": run.where}


@pytest.mark.parametrize(("program", "reason", "logged"), [
    ('print("failed: no disk"); sys.exit(1)', "no disk", ""),
    ("raise RuntimeError('kaboom')", "its process ended with code 1", "kaboom"),
    ("os.kill(os.getpid(), 9)", "its process ended with code -9", ""),
    (MAKE.strip() + "; sys.exit(3)", "its process ended with code 3", ""),  # after all is made
    ("pass", "it left no result", ""),
])  # fmt: skip
def test_a_failure_has_reason_and_log_and_stops_no_other(make, tmp_path, program, reason, logged):
    [failure], lines = make(f"if seed == 0: {program}\nelse: {MAKE}", *RUNS[:2])
    assert (failure.run, failure.reason) == (RUNS[0], reason)
    assert failure.log == tmp_path / "runs" / RUNS[0].key / LOG_FILE
    assert logged in failure.log.read_text()
    assert lines[0].startswith("failed after") and lines[0].endswith("1 of 2 runs, 1 failed")
    assert lines[1].startswith("done after") and lines[1].endswith("2 of 2 runs, 1 failed")
    if logged:
        assert make(MAKE, *RUNS[:2])[0] == [] and notes(tmp_path)[-1] == "0 made"
        assert failure.log.read_text() == ""


LAST_FIRST = """
note(f"pid={os.getpid()};")
if seed < 2:
    wait_for("2 pid=", 1)
    last = (home / "notes").read_text().split("2 pid=")[1].split(";")[0]
    while Path("/proc", last).exists(): time.sleep(0.05)  # until it is waited for
    time.sleep(1)
sys.exit(1)
"""


def test_failures_are_in_the_order_of_the_runs(make):
    failures, lines = make(LAST_FIRST, *RUNS[:3], at_once=3)
    assert [failure.run for failure in failures] == RUNS[:3]
    assert "seed 2." in lines[0]


@pytest.mark.parametrize(("at_once", "most"), [(1, 1), (3, 3), (None, 2)])
def test_as_many_run_at_once_as_are_wanted_or_fit(make, tmp_path, monkeypatch, at_once, most):
    asked = []
    monkeypatch.setattr(side_by_side, "parallel_runs", lambda runs: asked.append(runs) or 2)
    make(MAKE, RUNS[0])
    asked.clear()
    start = f'note("start"); wait_for("start", {most}); time.sleep(0.3)\n'
    make(start + MAKE, *RUNS, at_once=at_once)
    running = [0]
    for line in notes(tmp_path)[1:]:
        running.append(running[-1] + (1 if line.endswith("start") else -1))
    assert max(running) == most
    assert asked == [RUNS[1:]] * (at_once is None)


def test_on_a_terminal_a_run_that_runs_is_a_bar(make):
    output = "print('round 2', flush=True); time.sleep(0.5)\n"
    bars = [line for line in make(output + MAKE, RUNS[0], terminal=True)[1] if "round 2/3" in line]
    assert bars and all(f"{RUNS[0].name} ━" in line for line in bars)


@pytest.mark.parametrize(("reasons", "message"), [
    ([""], "3 of 6 runs, 2 made before, about 30.0 s left"),
    (["", ""], "4 of 6 runs, 2 made before, about 10.0 s left"),
    # A failure says nothing of the time that others take.
    (["no disk"], "3 of 6 runs, 2 made before, 1 failed"),
    (["no disk", ""], "4 of 6 runs, 2 made before, 1 failed, about 20.0 s left"),
    ([""] * 4, "6 of 6 runs, 2 made before"),
])  # fmt: skip
def test_progress_is_printed_with_the_time_left_in_proportion(reasons, message):
    assert progress_text(reasons, 6, 2, 10.0) == message


def federation(sites, **settings):
    return study_runs.run(sites={f"nih-{n}": ("Mass",) for n in range(sites)}, **settings)


PLENTY, TAKEN = 1e15, 2 * 0.6e9 + 8 * 224**2 * 1100  # bytes; for one run of 224 pixels
LARGE, TWO = study_runs.run("complete", image_size=224), 3 * 0.6e9 + 2 * 8 * 32**2 * 1100


@pytest.mark.parametrize(("cores", "memory", "runs", "number"), [
    # Three and a half processes for each core, in a federation no more than there are cores.
    (2, PLENTY, [RUNS[0]], 7), (4, PLENTY, [RUNS[0], federation(3)], 4),
    (4, PLENTY, [federation(10), RUNS[0]], 3),
    # In nine tenths of the free memory, in which the largest one must fit.
    (99, 3 * TAKEN, [RUNS[0], LARGE], 3), (99, 2.99 * TAKEN, [LARGE], 2),
    (99, 3 * TWO, [federation(2, batch_size=9)], 2), (99, 1, [LARGE], 1),
])  # fmt: skip
def test_as_many_fit_as_have_cores_and_memory(monkeypatch, cores, memory, runs, number):
    free = SimpleNamespace(available=1.000001 * memory / 0.9, total=PLENTY)
    monkeypatch.setattr(side_by_side.psutil, "virtual_memory", lambda: free)
    monkeypatch.setattr(side_by_side.tensorflow_setup, "cores", lambda: cores)
    assert parallel_runs(runs) == number


WAIT = """
def ended(*_):
    note("terminated"); time.sleep(0.5); note("stopped"); sys.exit()
signal.signal(signal.SIGTERM, ended)
note(f"start {os.getpgid(0) == os.getpid()} {stat.S_ISFIFO(os.fstat(0).st_mode)}")
wait_for("start", 2)
if seed == 1: os.kill(os.getppid(), signal.SIGINT)
time.sleep(60)
"""


class TestInterrupt:
    @pytest.fixture(params=[signal.SIGINT, signal.SIGTERM], ids=["INT", "TERM"])
    def interrupted(self, make, tmp_path, request):
        """Interrupts two of four runs, after a first one, as the command does; none is left."""
        signals = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: lambda *_: sys.exit()}
        before = {each: signal.signal(each, handler) for each, handler in signals.items()}

        def interrupted(program):
            threads = active_count()
            program = program.replace("SIGINT", request.param.name)
            with pytest.raises((KeyboardInterrupt, SystemExit)):
                make(f"if seed == 0:\n    {MAKE}    sys.exit()\n{program}", *RUNS, at_once=2)
            assert active_count() == threads
            found = [each.info["cmdline"] or () for each in psutil.process_iter(["cmdline"])]
            assert not any(str(tmp_path / "program.py") in words for words in found)

        yield interrupted
        for each, handler in before.items():
            signal.signal(each, handler)

    def test_runs_hear_it_once_have_time_and_no_more_start(self, interrupted, make, tmp_path):
        """A terminal's own signal would cut short how a run ends its simulator.

        Its input is a pipe, which ends with this process: see `side_by_side.main`.
        """
        interrupted(WAIT)
        output = ("start True True", "stopped", "terminated")
        expected = [f"{seed} {text}" for seed in (1, 2) for text in output]
        assert sorted(notes(tmp_path)) == ["0 made", *expected]
        assert make(MAKE, *RUNS)[0] == []
        assert sorted(notes(tmp_path)[-4:]) == [f"{seed} made" for seed in (1, 2, 3, 4)]

    def test_one_that_does_not_end_is_killed_and_its_own(self, interrupted, tmp_path, monkeypatch):
        monkeypatch.setattr(side_by_side, "_GRACE", 0.5)
        stubborn = WAIT.replace("SIGTERM, ended", "SIGTERM, signal.SIG_IGN")
        interrupted(stubborn.replace("time.sleep(60)", "os.fork(); time.sleep(60)"))
        assert len(notes(tmp_path)) == 3


CHILD = """
import sys, time
from pathlib import Path
from cxr_studies.runner import side_by_side
from cxr_study.runs.simulator_process import SimulationError
"""
WAITING = """
def train(tell):
    try:
        tell(1)
        time.sleep(60)
    finally:
        Path("cleaned up").touch()
sys.exit(side_by_side.main(train))
"""


def start(home, program):
    """Start a program; its output is buffered, as without a terminal."""
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    command, pipe = [sys.executable, "-c", CHILD + program], subprocess.PIPE
    return subprocess.Popen(
        command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, cwd=home, env=buffered
    )


@pytest.mark.parametrize(("program", "out"), [
    ("for rounds in (0, 1, 1, 2, 2): tell(rounds)", "round 1\nround 2\n0\n"),
    *[(f"raise {error}('no disk;\\n  make room')", "failed: no disk; make room\n1\n")
     for error in ("ValueError", "OSError", "SimulationError")],
    ("1 / 0", ""),
])  # fmt: skip
def test_rounds_are_printed_once_and_what_a_user_can_cause_in_one_line(tmp_path, program, out):
    program = f"def train(tell):\n    {program}\nprint(side_by_side.main(train))"
    with start(tmp_path, program) as process:
        trace = process.stderr.read()
        assert process.stdout.read() == out
    message = trace.startswith("Traceback") and "ZeroDivisionError" in trace
    assert message == (not out) and process.returncode == (not out)
    assert trace == "" or message


@pytest.mark.parametrize("end", [lambda it: it.terminate(), lambda it: it.stdin.close()])
def test_it_cleans_up_and_ends_when_it_is_terminated_and_when_its_input_ends(end, tmp_path):
    with start(tmp_path, WAITING) as process:
        try:
            process.stdin.write("input means nothing\n")
            process.stdin.flush()
            assert process.stdout.readline() == "round 1\n"
            assert process.poll() is None
            end(process)
            assert process.wait(120) == 128 + signal.SIGTERM
            assert (tmp_path / "cleaned up").exists()
            assert (process.stdout.read(), process.stderr.read()) == ("", "")
        finally:
            process.kill()
