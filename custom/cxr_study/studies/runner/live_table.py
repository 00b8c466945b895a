"""How far the runs of a study are: a live table, or a line for each run without a terminal."""

from __future__ import annotations

import time
from collections.abc import Sequence
from threading import Lock

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table

from cxr_study.runs.run_queue import DONE, FAILS, KEPT, STARTS
from cxr_study.runs.training_process import ROUND
from cxr_study.studies.plan.planned_run import Run
from cxr_study.studies.runner.machine_capacity import Machine


class LiveTable:
    """Shows the runs that are being made, each key once; for a `with` block."""

    def __init__(self, runs: Sequence[Run], machine: Machine, console: Console):
        self.machine = machine
        self.console = console
        self._lock = Lock()
        self._todo = {run.key: run for run in runs}
        self._began: dict[str, float] = {}
        self._rounds: dict[str, int] = {}
        self._done: list[tuple[Run, float]] = []
        self._counts = {DONE: 0, KEPT: 0, FAILS: 0}
        self._live = Live(get_renderable=self._table, console=console, refresh_per_second=2)

    def __enter__(self) -> LiveTable:
        if self.console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def told(self, run: Run, doing: str) -> None:
        """Take in what a run does; see `run_queue.Told`."""
        with self._lock:
            if doing == STARTS:
                self._began[run.key] = time.monotonic()
            elif doing.startswith(ROUND):
                self._rounds[run.key] = int(doing.removeprefix(ROUND))
            else:
                self._ended(run, doing)

    def _ended(self, run: Run, how: str) -> None:
        self._counts[how] += 1
        del self._todo[run.key]
        began = self._began.pop(run.key, None)
        if began is None:
            return
        seconds = time.monotonic() - began
        if how == DONE:
            self._done.append((run, seconds))
        if not self.console.is_terminal:
            told = f"{how} after {_duration(seconds)}: {run.name}. {self._summary()}"
            self.console.print(told, highlight=False, markup=False, soft_wrap=True)

    def _summary(self) -> str:
        made = sum(self._counts.values())
        told = [f"{made} of {made + len(self._todo)} runs"]
        for how, words in ((KEPT, "made before"), (FAILS, "failed")):
            if self._counts[how]:
                told.append(f"{self._counts[how]} {words}")
        left = self.machine.seconds_left(self._todo.values(), self._done)
        if self._todo and left is not None:
            told.append(f"about {_duration(left)} left")
        return ", ".join(told)

    def _table(self) -> RenderableType:
        with self._lock:
            table = Table(box=None, padding=(0, 2, 0, 0))
            for heading in ("scenario", "method", "seed", "round", "", "time"):
                right = heading in ("seed", "time")
                table.add_column(heading, justify="right" if right else "left")
            now = time.monotonic()
            for key, began in self._began.items():
                run, made = self._todo[key], self._rounds.get(key, 0)
                table.add_row(
                    run.scenario,
                    f"{run.row.title}, {run.row.strategy_title}",
                    str(run.seed),
                    f"{made}/{run.rounds}",
                    ProgressBar(run.rounds, made, width=20),
                    _duration(now - began),
                )
            return Group(self._summary(), table)


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
