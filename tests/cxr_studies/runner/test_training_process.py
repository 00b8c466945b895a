"""The processes are real; their trainings are a few lines."""

import os
import signal
import subprocess
import sys

import pytest

BEGINNING = """
import sys, time
from pathlib import Path
from cxr_studies.runner import training_process
"""
WAITING = """
def train(tell):
    try:
        tell(1)
        time.sleep(60)
    finally:
        Path("cleaned up").touch()
sys.exit(training_process.main(train, ()))
"""


def start(home, program):
    """Start a program; its output is buffered, as without a terminal."""
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    command, pipe = [sys.executable, "-c", BEGINNING + program], subprocess.PIPE
    return subprocess.Popen(
        command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, cwd=home, env=buffered
    )


@pytest.mark.parametrize(("program", "out"), [
    ("for rounds in (0, 1, 1, 2, 2): tell(rounds)", "round 1\nround 2\n0\n"),
    *[(f"raise {error}('no disk;\\n  make room')", "failed: no disk; make room\n1\n")
     for error in ("ValueError", "OSError", "EOFError")],
    ("1 / 0", ""),
])  # fmt: skip
def test_rounds_are_said_once_and_what_a_user_can_cause_in_one_line(tmp_path, program, out):
    program = f"def train(tell):\n    {program}\nprint(training_process.main(train, (EOFError,)))"
    with start(tmp_path, program) as process:
        trace = process.stderr.read()
        assert process.stdout.read() == out
    told = trace.startswith("Traceback") and "ZeroDivisionError" in trace
    assert told == (not out) and process.returncode == (not out)
    assert trace == "" or told


@pytest.mark.parametrize(
    "end", [lambda process: process.terminate(), lambda process: process.stdin.close()]
)
def test_it_cleans_up_and_ends_when_it_is_told_to_and_when_its_input_ends(end, tmp_path):
    with start(tmp_path, WAITING) as process:
        try:
            process.stdin.write("input means nothing\n")
            process.stdin.flush()
            assert process.stdout.readline() == "round 1\n"
            assert process.poll() is None
            end(process)
            assert process.wait(30) == 128 + signal.SIGTERM
            assert (tmp_path / "cleaned up").exists()
            assert (process.stdout.read(), process.stderr.read()) == ("", "")
        finally:
            process.kill()
