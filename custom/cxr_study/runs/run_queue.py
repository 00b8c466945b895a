"""Trainings side by side, as many as there is room for, each in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from queue import Queue
from typing import Generic, TypeVar

from cxr_study.runs.training_process import FAILED, ROUND

T = TypeVar("T")
"""What the caller calls a training."""

STARTS, DONE, FAILS, KEPT = "starts", "done", "failed", "kept"

Told = Callable[[T, str], None]
"""Called with a training and what it does: `STARTS`, `ROUND` and a number, or how it ended: `DONE`,
`FAILS` or `KEPT`."""

_GRACE = 20
"""Seconds that a training has for stopping its simulator."""


@dataclass(frozen=True)
class Program:
    """Command of a process as in `training_process`, and a new file for its standard error."""

    command: Sequence[str]
    log: Path


@dataclass(frozen=True)
class Failure(Generic[T]):
    """A training that failed; `reason` is one line, `log` holds more."""

    training: T
    reason: str
    log: Path


def run_all(
    trainings: Sequence[T],
    *,
    prepare: Callable[[T], Program],
    is_made: Callable[[T], bool],
    has_room: Callable[[T, Sequence[T]], bool],
    told: Told[T],
) -> list[Failure[T]]:
    """Make the trainings that are not made yet.

    An interrupt ends those that run, and so does the end of this process, be it killed; what was
    made before is kept for the next time.

    Args:
        trainings: In this order, where there is room.
        prepare: Writes what a training's process reads; called just before that starts.
        is_made: Whether a training has left what it should.
        has_room: Whether a training can start beside others; beside none it always can.
        told: Called as things happen.

    Returns:
        The failures, in the order of the trainings. A failed one does not stop the others.
    """
    pending = {}
    for place, training in enumerate(trainings):
        if is_made(training):
            told(training, KEPT)
        else:
            pending[place] = training
    crew = _Crew(told)
    failures = {}
    try:
        while pending or crew.running:
            for place, training in list(pending.items()):
                if has_room(training, [member.training for member in crew.running.values()]):
                    del pending[place]
                    crew.start(place, training, prepare(training))
            place, member = crew.next_ended()
            if not is_made(member.training):
                member.reason = member.reason or "it left no result"
            if member.reason:
                failures[place] = Failure(member.training, member.reason, member.log)
            told(member.training, FAILS if member.reason else DONE)
    finally:
        crew.stop()
    return [failures[place] for place in sorted(failures)]


@dataclass
class _Member(Generic[T]):
    """A training that runs."""

    training: T
    process: subprocess.Popen[str]
    log: Path
    reason: str = ""  # why it failed


class _Crew(Generic[T]):
    """The trainings that run, by their places in the order."""

    def __init__(self, told: Told[T]):
        self.running: dict[int, _Member[T]] = {}
        self._told = told
        self._said: Queue[tuple[int, str | None]] = Queue()

    def start(self, place: int, training: T, program: Program) -> None:
        """Start a training in a process that ends when this one does."""
        paths = os.pathsep.join(path for path in sys.path if path)
        with program.log.open("w", encoding="utf-8") as log:
            process = subprocess.Popen(
                program.command,
                stdin=subprocess.PIPE,  # its end is this process's end
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env={**os.environ, "PYTHONPATH": paths},
                # An interrupt in the terminal is for this process, which ends that one once.
                start_new_session=True,
            )
        self.running[place] = _Member(training, process, program.log)
        threading.Thread(target=self._listen, args=(place, process), daemon=True).start()
        self._told(training, STARTS)

    def _listen(self, place: int, process: subprocess.Popen[str]) -> None:
        with process:
            for line in process.stdout or ():
                self._said.put((place, line))
        self._said.put((place, None))

    def next_ended(self) -> tuple[int, _Member[T]]:
        """Tell what the trainings do until one has ended; that one and its place."""
        while True:
            place, line = self._said.get()
            member = self.running[place]
            if line is None:
                del self.running[place]
                if (code := member.process.returncode) and not member.reason:
                    member.reason = f"its process ended with code {code}"
                return place, member
            if line.startswith(ROUND):
                self._told(member.training, line.strip())
            elif line.startswith(FAILED):
                member.reason = line.removeprefix(FAILED).strip()

    def stop(self) -> None:
        """End those that run, with their simulators."""
        processes = [member.process for member in self.running.values()]
        for process in processes:
            process.terminate()
        for process in processes:
            with suppress(subprocess.TimeoutExpired):
                process.wait(_GRACE)
            process.kill()
