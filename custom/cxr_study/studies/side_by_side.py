"""Runs side by side, as many as cores and memory allow, each in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from cxr_study.studies.machine import Machine
from cxr_study.studies.one_run import FAILED, ROUND
from cxr_study.studies.run import Run
from cxr_study.studies.run_folder import LOG_FILE, SPEC_FILE, read_result

STARTS, DONE, FAILS, KEPT = "starts", "done", "failed", "kept"

Told = Callable[[Run, str], None]
"""Called with a run and what it does: `STARTS`, `ROUND` and a number, `DONE`, `FAILS` or `KEPT`."""

COMMAND = (sys.executable, "-m", "cxr_study.studies.one_run")

_GRACE = 20
"""Seconds that a run has for stopping its simulator."""


@dataclass(frozen=True)
class Failure:
    """A run that failed; `reason` is one line, `log` holds more."""

    run: Run
    reason: str
    log: Path


def run_all(
    runs: Sequence[Run], folder: Path, machine: Machine, told: Told = lambda run, doing: None
) -> list[Failure]:
    """Make the runs that are not made yet; of those with the same key one.

    An interrupt ends those that run, and what they have made stays for the next time.

    Args:
        runs: In this order, where there is room.
        folder: Each run has a folder in it, named by its key; see `run_folder`.
        machine: What they may take.
        told: Called from several threads.

    Returns:
        The failures. A failed run does not stop the others.
    """
    unique: dict[str, Run] = {}
    for run in runs:
        unique.setdefault(run.key, run)
    pending = {}
    for key, run in unique.items():
        if read_result(folder / key) is None:
            pending[key] = run
        else:
            told(run, KEPT)
    crew = _Crew(folder, told)
    with crew.changed:
        try:
            while pending or crew.running:
                for key, run in list(pending.items()):
                    if machine.has_room(run, list(crew.running.values())):
                        del pending[key]
                        crew.start(run)
                crew.changed.wait()
        finally:
            crew.stop()
    order = list(unique)
    return sorted(crew.failures, key=lambda failure: order.index(failure.run.key))


class _Crew:
    """The runs that run; `changed` guards it and is notified when one has ended.

    Args:
        folder: Of the runs' folders.
        told: See `run_all`.
    """

    def __init__(self, folder: Path, told: Told):
        self.changed = threading.Condition()
        self.running: dict[str, Run] = {}
        self.failures: list[Failure] = []
        self._folder = folder
        self._told = told
        self._processes: dict[str, subprocess.Popen[str]] = {}
        self._stopped = False

    def start(self, run: Run) -> None:
        """Start a run in a process that ends when this one does."""
        folder = self._folder / run.key
        folder.mkdir(parents=True, exist_ok=True)
        spec = {"name": run.name, "what": run.what, "where": run.where}
        text = json.dumps(spec, indent=1, ensure_ascii=False)
        (folder / SPEC_FILE).write_text(f"{text}\n", encoding="utf-8")
        paths = os.pathsep.join(path for path in sys.path if path)
        with (folder / LOG_FILE).open("w", encoding="utf-8") as log:
            process = subprocess.Popen(
                [*COMMAND, str(folder)],
                stdin=subprocess.PIPE,  # its end is this process's end
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env={**os.environ, "PYTHONPATH": paths},
                # An interrupt in the terminal is for this process, which ends that one once.
                start_new_session=True,
            )
        self.running[run.key] = run
        self._processes[run.key] = process
        threading.Thread(target=self._follow, args=(run, process), daemon=True).start()

    def _follow(self, run: Run, process: subprocess.Popen[str]) -> None:
        """Pass on what a run says, until it ends."""
        self._told(run, STARTS)
        reason = None
        with process:
            for line in process.stdout or ():
                if line.startswith(ROUND):
                    self._told(run, line.strip())
                elif line.startswith(FAILED):
                    reason = line.removeprefix(FAILED).strip()
        if self._stopped:
            return
        folder = self._folder / run.key
        if process.returncode:
            reason = reason or f"its process ended with code {process.returncode}"
        elif read_result(folder) is None:
            reason = "it left no result"
        self._told(run, FAILS if reason else DONE)
        with self.changed:
            if reason:
                self.failures.append(Failure(run, reason, folder / LOG_FILE))
            del self.running[run.key], self._processes[run.key]
            self.changed.notify()

    def stop(self) -> None:
        """End those that run, with the simulators that they have started."""
        self._stopped = True
        processes = list(self._processes.values())
        for process in processes:
            process.terminate()
        for process in processes:
            with suppress(subprocess.TimeoutExpired):
                process.wait(_GRACE)
            process.kill()
