import io
import time

import pytest
from rich.console import Console

import study_runs
from cxr_study.runs.run_queue import DONE, FAILS, KEPT, STARTS
from cxr_study.studies.runner import live_table
from cxr_study.studies.runner.live_table import LiveTable
from cxr_study.studies.runner.machine_capacity import Machine

ONE_CORE = Machine(cores=1, memory=1.0)
RUNS = [study_runs.run("complete", "fedavg", seed, "two sites", num_rounds=10) for seed in range(4)]


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands until it is set."""

    class Clock:
        now = 1000.0

        def monotonic(self):
            return self.now

    clock = Clock()
    monkeypatch.setattr(live_table, "time", clock)
    return clock


@pytest.fixture
def shown(clock):
    """What is shown without a terminal after some things have happened, each after some seconds."""

    def show(*happened, runs=RUNS):
        written = io.StringIO()
        with LiveTable(runs, ONE_CORE, Console(file=written, width=60)) as table:
            for seconds, run, doing in happened:
                clock.now += seconds
                table.told(run, doing)
        return written.getvalue().splitlines()

    return show


@pytest.fixture
def drawn(clock):
    """The table that a terminal shows in the end, line by line."""

    def draw(*happened, seconds=0):
        console = Console(
            file=io.StringIO(), record=True, force_terminal=True, no_color=True, width=120
        )
        with LiveTable(RUNS, ONE_CORE, console) as table:
            for run, doing in happened:
                table.told(run, doing)
            clock.now += seconds
        lines = [" ".join(line.split()) for line in console.export_text().splitlines()]
        assert not any("after" in line for line in lines)  # one that ends is no line of its own
        return lines[max(n for n, line in enumerate(lines) if " of 4 runs" in line) :]

    return draw


def test_without_a_terminal_a_run_that_ends_is_a_line_with_its_time_and_what_is_left(shown):
    started = ((0, RUNS[0], STARTS), (1, RUNS[0], "round 1"), (9, RUNS[0], DONE))
    left = "1 of 4 runs, about 30 s left"
    assert shown(*started) == [f"done after 10 s: two sites, complete-fedavg, seed 0. {left}"]
    [line] = shown(*started, runs=RUNS[:1])
    assert line.endswith("seed 0. 1 of 1 runs")
    [line] = shown((0, RUNS[1], KEPT), *started)
    assert line.endswith("2 of 4 runs, 1 made before, about 20 s left")
    # A failure says nothing of the time that others take.
    failed, done = shown((0, RUNS[1], STARTS), (3, RUNS[1], FAILS), *started)
    assert failed.startswith("failed after 3 s: ") and failed.endswith("1 of 4 runs, 1 failed")
    assert done.endswith("2 of 4 runs, 1 failed, about 20 s left")


@pytest.mark.parametrize(("seconds", "told"), [
    (59, "59 s"),
    (60, "1 min"),
    (100, "2 min"),
    (3599, "1 h 0 min"),
    (9000, "2 h 30 min"),
])  # fmt: skip
def test_times_are_as_long_as_they_need_to_be_and_names_as_they_are(shown, seconds, told):
    run = study_runs.run(scenario="[bold]7[/bold]")
    [line] = shown((0, run, STARTS), (seconds, run, DONE), runs=[run])
    assert line.startswith(f"done after {told}: [bold]7[/bold], surgical")


def test_in_a_terminal_each_run_that_runs_has_a_row_and_others_are_counted(drawn):
    begun = ((RUNS[1], STARTS), (RUNS[1], "round 7"), (RUNS[0], STARTS))
    method = "two sites Centralised, fully labelled, batch norm trained"
    assert drawn(*begun, seconds=90) == [
        "0 of 4 runs",
        "scenario method seed round time",
        f"{method} 1 7/10 {14 * '━'} 2 min",
        f"{method} 0 0/10 2 min",
    ]
    ended = drawn(*begun, (RUNS[1], DONE), (RUNS[2], KEPT))
    assert ended[0] == "2 of 4 runs, 1 made before, about 0 s left"
    assert ended[2:] == [f"{method} 0 0/10 0 s"]


def test_a_run_moves_on_while_it_is_shown(clock):
    shown = io.StringIO()
    with LiveTable(RUNS, ONE_CORE, Console(file=shown, force_terminal=True)) as table:
        table.told(RUNS[0], STARTS)
        table.told(RUNS[0], "round 7")
        began = time.monotonic()
        while "7/10" not in shown.getvalue():
            assert time.monotonic() - began < 10
            time.sleep(0.05)
