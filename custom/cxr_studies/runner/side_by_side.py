"""Runs of studies side by side, each in a process of its own: both ends of it.

A run's process reports the number of rounds made (`_ROUND`) and why it failed (`_FAILED`) on its
standard output. It ends when its standard input is closed, hence with the process that started it.
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
from cxr_study.runs.finished_run import JobFailedError
from surgical_aggregation.site.training import tensorflow_setup

COMMAND = (sys.executable, "-m", "cxr_studies.runner.one_run")
"""The program of a run; its argument is the run's folder."""

_ROUND = "round "
"""Prefix of a line on standard output with the number of rounds made."""

_FAILED = "failed: "
"""Prefix of the last line on standard output, with the reason, where a training failed."""

_BUSY = 3.5
"""Processes for each core: a federation leaves cores idle while it starts, waits and stops."""

_PROCESS_BYTES, _PIXEL_BYTES = 0.6e9, 1100
"""Memory of a process that trains, and per pixel of a batch; DenseNet121's, the larger network."""

_GRACE = 20
"""Seconds that runs have to stop their simulators."""


@dataclass(frozen=True)
class Failure:
    """A run that failed.

    Attributes:
        run: The run.
        reason: One line.
        log: File with more.
    """

    run: Run
    reason: str
    log: Path


def parallel_runs(runs: Sequence[Run]) -> int:
    """Number of runs for which this machine has cores and free memory, all as large as the largest.

    Args:
        runs: Those that are pending; at least one.

    Returns:
        At least 1.
    """
    cores, memory = tensorflow_setup.cores(), 0.9 * psutil.virtual_memory().available
    widest = max(min(run.processes, cores) for run in runs)
    return max(1, int(min(_BUSY * cores / widest, memory / max(map(_bytes, runs)))))


def _bytes(run: Run) -> float:
    """Estimated memory of a run: its own process, and one for each site."""
    size, batch = int(run.what["settings"]["image_size"]), int(run.what["settings"]["batch_size"])
    return (run.processes + 1) * _PROCESS_BYTES + run.processes * batch * size**2 * _PIXEL_BYTES


def run_all(
    runs: Sequence[Run], folder: Path, at_once: int | None, console: Console
) -> list[Failure]:
    """Make the runs that are not made yet, in folders named by their keys.

    Each run that ends is a line on the console, and running ones are bars on a terminal. An
    interrupt ends them, and so does the end of this process, even if it is killed; finished runs
    are kept.

    Args:
        runs: In this order, each key once.
        folder: Of all runs.
        at_once: Largest number of runs at the same time; None: see `parallel_runs`.
        console: Where progress is printed.

    Returns:
        The failures, in the order of the runs. A failed run does not stop the others.
    """
    pending = [run for run in runs if read_result(folder / run.key) is None]
    if not pending:
        return []
    kept, began = len(runs) - len(pending), time.monotonic()
    reasons: dict[Run, str] = {}
    workers = at_once or parallel_runs(pending)
    with round_bars(console, transient=True) as bars, ThreadPoolExecutor(workers) as pool:
        processes = _RunProcesses(folder, bars)
        try:
            futures = {pool.submit(processes.make, run): run for run in pending}
            for future in as_completed(futures):
                run = futures[future]
                reasons[run], seconds = future.result()
                far = progress_text(
                    list(reasons.values()), len(runs), kept, time.monotonic() - began
                )
                how = f"{'failed' if reasons[run] else 'done'} after {duration(seconds)}"
                line = f"{how}: {run.name}. {far}"
                console.print(line, highlight=False, markup=False, soft_wrap=True)
        finally:
            processes.stop()
    return [
        Failure(run, reasons[run], folder / run.key / LOG_FILE) for run in pending if reasons[run]
    ]


def progress_text(reasons: Sequence[str], total: int, kept: int, seconds: float) -> str:
    """How many runs have ended, and about how long the rest takes.

    The estimate is proportional to the runs made in this session; without one there is none.

    Args:
        reasons: Reason of each run that has ended: "" where it was made, else why it failed.
        total: Number of runs.
        kept: Number of these that were made before.
        seconds: Since the first one began.

    Example:
        >>> progress_text(["", ""], 6, 2, 120.0)
        '4 of 6 runs, 2 made before, about 2 min 00 s left'
    """
    ended, failed = kept + len(reasons), sum(map(bool, reasons))
    parts = [f"{ended} of {total} runs"]
    parts += [f"{kept} made before"] * bool(kept) + [f"{failed} failed"] * bool(failed)
    if ended < total and failed < len(reasons):
        left = seconds / (len(reasons) - failed) * (total - ended)
        parts.append(f"about {duration(left)} left")
    return ", ".join(parts)


def start(run: Run, folder: Path) -> subprocess.Popen[str]:
    """Start the process of a run, which ends when this one does; see `main`.

    Args:
        run: The run.
        folder: Of the run; created where it does not exist.

    Returns:
        The process; its standard output has the lines that the module's docstring describes.
    """
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


class _RunProcesses:
    """Makes runs, each in a thread of the caller's; after `stop` none runs and no other starts.

    Args:
        folder: Of all runs.
        bars: Shows a bar for each run.
    """

    def __init__(self, folder: Path, bars: Progress):
        self.folder = folder
        self.bars = bars
        self._lock = Lock()
        self._processes: list[subprocess.Popen[str]] = []
        self._stopped = False

    def make(self, run: Run) -> tuple[str, float]:
        """Make a run.

        Returns:
            Why it failed, or "", and its seconds.

        Raises:
            CancelledError: `stop` was called before.
        """
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
                    now = f"{_ROUND}{made}/{run.rounds}"
                    self.bars.update(task, completed=made, now=now, refresh=True)
                elif line.startswith(_FAILED):
                    reason = line.removeprefix(_FAILED).strip()
        self.bars.remove_task(task)
        if process.returncode:
            reason = reason or f"its process ended with code {process.returncode}"
        elif read_result(place) is None:
            reason = reason or "it left no result"
        return reason, time.monotonic() - began

    def stop(self) -> None:
        """End all runs and their simulators; what still runs after `_GRACE` seconds is killed."""
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
                with suppress(ProcessLookupError):  # its thread may see it end first
                    if process.poll() is None:
                        os.killpg(process.pid, signal.SIGKILL)


def main(train: Callable[[Callable[[int], None]], None]) -> int:
    """Run a training in this process, so that it can be ended from outside.

    Args:
        train: Called with a function that takes the number of rounds made so far.

    Returns:
        Exit code: 0, or 1 where it failed: by a failed job, ValueError or OSError, which are
        reported in one line. Any other error has its traceback.
    """
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    threading.Thread(target=_end_with_input, daemon=True).start()
    printed = 0

    def on_round(rounds: int) -> None:
        nonlocal printed
        if rounds != printed:
            printed = rounds
            print(f"{_ROUND}{rounds}", flush=True)

    try:
        train(on_round)
    except (ValueError, OSError, JobFailedError) as error:
        print(_FAILED + " ".join(str(error).split()), flush=True)
        return 1
    return 0


def _end_with_input() -> None:
    """End this process when the one that started it has ended, even if that was killed."""
    while os.read(sys.stdin.fileno(), 1024):  # sys.stdin itself would be locked when this ends
        pass
    os.kill(os.getpid(), signal.SIGTERM)
