"""Runs of studies side by side, each in a process of its own: both ends of it.

The standard output of a run's process says how far it is (`_ROUND`) and why it failed (`_FAILED`).
It ends when its standard input does: with whoever started it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

import psutil
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress

from cxr_studies.plan.run_folder import LOG_FILE, Run, read_result, write_spec
from cxr_study.common.progress import round_bars
from cxr_study.common.wording import duration
from surgical_aggregation.site.training import tensorflow_setup

COMMAND = (sys.executable, "-m", "cxr_studies.runner.one_run")
"""The program of a run; it is given the run's folder."""

_ROUND = "round "
"""How a line on standard output begins that says how many rounds are made."""

_FAILED = "failed: "
"""How the last line on standard output begins that says why a training failed."""

_BUSY = 3.5
"""Processes for each core: a federation leaves cores idle while it starts, waits and stops."""

_PROCESS_BYTES, _PIXEL_BYTES = 0.6e9, 1100
"""Of a process that trains, and of each pixel of a batch: DenseNet121's, the larger network."""

_GRACE = 20
"""Seconds that runs have for stopping their simulators."""


@dataclass(frozen=True)
class Failure:
    """A run that failed; `reason` is one line, `log` holds more."""

    run: Run
    reason: str
    log: Path


def fitting(runs: Sequence[Run]) -> int:
    """How many runs this machine has cores and free memory for now, were all like the largest.

    Returns:
        At least 1.
    """
    cores, memory = tensorflow_setup.cores(), 0.9 * psutil.virtual_memory().available
    widest = max(min(run.processes, cores) for run in runs)
    return max(1, int(min(_BUSY * cores / widest, memory / max(map(_bytes, runs)))))


def _bytes(run: Run) -> float:
    size, batch = int(run.what["settings"]["image_size"]), int(run.what["settings"]["batch_size"])
    return (run.processes + 1) * _PROCESS_BYTES + run.processes * batch * size**2 * _PIXEL_BYTES


def run_all(
    runs: Sequence[Run], folder: Path, at_once: int | None, console: Console
) -> list[Failure]:
    """Make the runs that are not made yet, in folders named by their keys.

    Each that ends is a line on the console, and those that run are bars on a terminal. An interrupt
    ends them, and so does the end of this process, be it killed; what was made before is kept for
    the next time.

    Args:
        runs: In this order, each key once.
        folder: Of all runs.
        at_once: Runs at the same time at most; None: see `fitting`.
        console: Where it is told.

    Returns:
        The failures, in the order of the runs. A failed one does not stop the others.
    """
    pending = [run for run in runs if read_result(folder / run.key) is None]
    if not pending:
        return []
    kept, began = len(runs) - len(pending), time.monotonic()
    reasons: dict[Run, str] = {}
    workers = at_once or fitting(pending)
    with round_bars(console, transient=True) as bars, ThreadPoolExecutor(workers) as pool:
        crew = _Crew(folder, bars)
        try:
            futures = {pool.submit(crew.make, run): run for run in pending}
            for future in as_completed(futures):
                run = futures[future]
                reasons[run], seconds = future.result()
                far = how_far(list(reasons.values()), len(runs), kept, time.monotonic() - began)
                how = f"{'failed' if reasons[run] else 'done'} after {duration(seconds)}"
                told = f"{how}: {run.name}. {far}"
                console.print(told, highlight=False, markup=False, soft_wrap=True)
        finally:
            crew.stop()
    return [
        Failure(run, reasons[run], folder / run.key / LOG_FILE) for run in pending if reasons[run]
    ]


def how_far(reasons: Sequence[str], total: int, kept: int, seconds: float) -> str:
    """Say how far runs are, and about how long the rest takes, in proportion to the made ones.

    Args:
        reasons: Why those failed that have ended; "" for one that is made.
        total: Runs.
        kept: Runs of these that were made before.
        seconds: Since the first one began.
    """
    ended, failed = kept + len(reasons), sum(map(bool, reasons))
    told = [f"{ended} of {total} runs"]
    told += [f"{kept} made before"] * bool(kept) + [f"{failed} failed"] * bool(failed)
    if ended < total and failed < len(reasons):
        left = seconds / (len(reasons) - failed) * (total - ended)
        told.append(f"about {duration(left)} left")
    return ", ".join(told)


def start(run: Run, folder: Path) -> subprocess.Popen[str]:
    """Start the process of a run, which ends when this one does; see `main`."""
    folder.mkdir(parents=True, exist_ok=True)
    write_spec(run, folder)
    with (folder / LOG_FILE).open("w", encoding="utf-8") as log:
        return subprocess.Popen(
            [*COMMAND, str(folder)],
            stdin=subprocess.PIPE,  # its end is this process's end
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            # An interrupt in the terminal is for this process, which ends that one once.
            start_new_session=True,
        )


class _Crew:
    """Makes runs, each in a thread of the caller's; after `stop` none runs and no other starts."""

    def __init__(self, folder: Path, bars: Progress):
        self.folder = folder
        self.bars = bars
        self._lock = Lock()
        self._processes: list[subprocess.Popen[str]] = []
        self._stopped = False

    def make(self, run: Run) -> tuple[str, float]:
        """Make a run; why it failed, or nothing, and its seconds."""
        began, place, reason = time.monotonic(), self.folder / run.key, ""
        with self._lock:
            if self._stopped:
                raise CancelledError
            process = start(run, place)
            self._processes.append(process)
        task = self.bars.add_task(escape(run.name), total=run.rounds, now="starting")
        with process:
            for line in process.stdout or ():
                if line.startswith(_ROUND):
                    made = int(line.removeprefix(_ROUND))
                    self.bars.update(task, completed=made, now=f"{_ROUND}{made}/{run.rounds}")
                elif line.startswith(_FAILED):
                    reason = line.removeprefix(_FAILED).strip()
        self.bars.remove_task(task)
        if process.returncode:
            reason = reason or f"its process ended with code {process.returncode}"
        elif read_result(place) is None:
            reason = reason or "it left no result"
        return reason, time.monotonic() - began

    def stop(self) -> None:
        """End those that run, with their simulators."""
        end = time.monotonic() + _GRACE
        try:
            with self._lock:
                self._stopped = True
            for process in self._processes:
                process.terminate()
            for process in self._processes:
                with suppress(subprocess.TimeoutExpired):
                    process.wait(max(0, end - time.monotonic()))
        finally:  # at once at a second interrupt
            for process in self._processes:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)


def main(
    train: Callable[[Callable[[int], None]], None], errors: tuple[type[Exception], ...]
) -> int:
    """Make the training of this process, so that it can be told to end; its exit code.

    Where a job failed with one of `errors`, a ValueError or an OSError, that is said in one line,
    and the code is 1; any other error has its trace.
    """
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    threading.Thread(target=_end_with_input, daemon=True).start()
    said = 0

    def tell(rounds: int) -> None:
        nonlocal said
        if rounds != said:
            said = rounds
            print(f"{_ROUND}{rounds}", flush=True)

    in_one_line: tuple[type[Exception], ...] = (ValueError, OSError, *errors)
    try:
        train(tell)
    except in_one_line as error:
        print(_FAILED + " ".join(str(error).split()), flush=True)
        return 1
    return 0


def _end_with_input() -> None:
    """End this process when whoever started it has gone, be it killed."""
    while os.read(sys.stdin.fileno(), 1024):  # sys.stdin itself would be locked when this ends
        pass
    os.kill(os.getpid(), signal.SIGTERM)
