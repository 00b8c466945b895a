"""Runs the trainings of a comparison side by side, each in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from cxr_study.comparison import outcome
from cxr_study.comparison.cell import FAILED, ROUND
from cxr_study.comparison.grid import Cell
from cxr_study.comparison.outcome import Outcome

STARTS, DONE, FAILS, KEPT = "starts", "done", "failed", "kept"
ENDED = (DONE, FAILS, KEPT)

Told = Callable[[Cell, str], None]
"""Called with a training and what it does: `STARTS`, `ROUND` and a number, or one of `ENDED`."""

COMMAND = (sys.executable, "-m", "cxr_study.comparison.cell")

_GRACE = 20
"""Seconds that a training has for stopping its simulator."""


@dataclass(frozen=True)
class Failure:
    """A training that failed; `reason` is one line, `log` holds more."""

    cell: Cell
    reason: str
    log: Path


def kept(cell: Cell, folder: Path) -> Path:
    """Where the outcome of a training is kept."""
    return folder / "results" / f"{cell.name}.json"


def run(
    cells: Sequence[Cell], folder: Path, *, at_once: int, told: Told = lambda cell, doing: None
) -> tuple[dict[str, Outcome], list[Failure]]:
    """Train what is not trained yet.

    Args:
        cells: In this order; all have different names.
        folder: Of the comparison. results/ holds the outcomes, one file each, and runs/ the jobs,
            workspaces, models and logs.
        at_once: How many side by side.
        told: Called from several threads.

    Returns:
        Name of a cell -> outcome, and the failures.

    Raises:
        ComparisonError: An outcome that is there is of other settings.
    """
    (folder / "results").mkdir(parents=True, exist_ok=True)
    (folder / "runs").mkdir(exist_ok=True)
    outcomes = {cell.name: outcome.read(kept(cell, folder), cell) for cell in cells}
    for cell in cells:
        if outcomes[cell.name] is not None:
            told(cell, KEPT)
    processes = _Processes()
    failures: dict[str, Failure] = {}
    with ThreadPoolExecutor(at_once) as pool:
        pending = {
            pool.submit(_train, cell, folder, processes, told): cell
            for cell in cells
            if outcomes[cell.name] is None
        }
        try:
            for future in as_completed(pending):
                cell, reason = pending[future], future.result()
                if reason is None:
                    outcomes[cell.name] = outcome.read(kept(cell, folder), cell)
                else:
                    failures[cell.name] = Failure(cell, reason, _log(cell, folder))
        except BaseException:  # an interrupt too: the pool would wait for all that is pending
            pool.shutdown(wait=False, cancel_futures=True)
            processes.stop()
            raise
    finished = {name: found for name, found in outcomes.items() if found is not None}
    return finished, [failures[cell.name] for cell in cells if cell.name in failures]


class _Processes:
    """Those that run; after `stop` none is started any more."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._running: set[subprocess.Popen[str]] = set()
        self.stopped = False

    def start(self, command: Sequence[str], log: Path) -> subprocess.Popen[str] | None:
        """Start a program whose standard output is read; None after `stop`."""
        paths = os.pathsep.join(path for path in sys.path if path)
        with self._lock, log.open("w", encoding="utf-8") as errors:
            if self.stopped:
                return None
            process = subprocess.Popen(
                command,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env={**os.environ, "PYTHONPATH": paths},
                # An interrupt in the terminal is for this process, which ends that one once.
                start_new_session=True,
            )
            self._running.add(process)
            return process

    def ended(self, process: subprocess.Popen[str]) -> None:
        """A process has ended."""
        with self._lock:
            self._running.discard(process)

    def stop(self) -> None:
        """End those that run, with the simulators that they have started."""
        with self._lock:
            self.stopped = True
            running = list(self._running)
        for process in running:
            process.terminate()
        for process in running:
            try:
                process.wait(_GRACE)
            except subprocess.TimeoutExpired:
                process.kill()


def _train(cell: Cell, folder: Path, processes: _Processes, told: Told) -> str | None:
    """Train one cell in a process; the reason where that failed."""
    work = folder / "runs" / cell.name
    spec = work.with_suffix(".json")
    spec.write_text(json.dumps(cell.to_json()), encoding="utf-8")
    process = processes.start(
        [*COMMAND, str(spec), str(work), str(kept(cell, folder))], _log(cell, folder)
    )
    if process is None:
        return "stopped"
    told(cell, STARTS)
    reason = None
    with process:
        for line in process.stdout or ():
            if line.startswith(ROUND):
                told(cell, line.strip())
            elif line.startswith(FAILED):
                reason = line.removeprefix(FAILED).strip()
    processes.ended(process)
    if processes.stopped:
        return "stopped"
    if process.returncode:
        reason = reason or f"its process ended with code {process.returncode}"
    elif not kept(cell, folder).is_file():
        reason = "it left no outcome"
    told(cell, FAILS if reason else DONE)
    return reason


def _log(cell: Cell, folder: Path) -> Path:
    return folder / "runs" / f"{cell.name}.log"
