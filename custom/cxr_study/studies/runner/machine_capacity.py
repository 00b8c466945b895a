"""How many runs fit on this machine, and how long they take."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

import psutil

from cxr_study.studies.plan.planned_run import Run
from surgical_aggregation.site.training import tensorflow_setup

_BUSY = 3.5
"""Processes for each core: a federation leaves cores idle while it starts, waits and stops."""

_PROCESS_BYTES, _PIXEL_BYTES = 0.6e9, 1100
"""Of a process that trains, and of each pixel of a batch: DenseNet121's, the larger network."""


@dataclass(frozen=True)
class Machine:
    """What runs may take.

    Attributes:
        at_once: Runs at most; None: as cores and memory allow.
    """

    cores: int
    memory: float
    at_once: int | None = None

    @classmethod
    def here(cls, at_once: int | None = None) -> Machine:
        """This machine, as it is now, for so many runs at a time."""
        return cls(tensorflow_setup.cores(), 0.9 * psutil.virtual_memory().available, at_once)

    def has_room(self, run: Run, beside: Sequence[Run]) -> bool:
        """Whether a run can start beside others; where there are none it always can."""
        together = [run, *beside]
        return not beside or (
            (self.at_once is None or len(together) <= self.at_once)
            and sum(map(self._width, together)) <= _BUSY * self.cores
            and sum(map(_bytes, together)) <= self.memory
        )

    def seconds_left(self, todo: Iterable[Run], done: Iterable[tuple[Run, float]]) -> float | None:
        """How long runs will take, judged by finished ones with about as many processes.

        A run adds its own time divided by how many of its kind fit side by side. All together take
        no less than the longest of them. Those that run count as if they had just started.

        Returns:
            Seconds; None where no run is finished.
        """
        known = defaultdict(list)
        for run, seconds in done:
            known[run.processes].append(seconds)
        if not known:
            return None
        alone = {
            run: fmean(known[min(known, key=lambda n: abs(n - run.processes))]) for run in todo
        }
        together = sum(seconds / self._fitting(run) for run, seconds in alone.items())
        return max([together, *alone.values()])

    def _fitting(self, run: Run) -> int:
        """How many runs like this one run side by side."""
        room = min(_BUSY * self.cores / self._width(run), self.memory / _bytes(run))
        return max(1, int(room if self.at_once is None else min(room, self.at_once)))

    def _width(self, run: Run) -> int:
        """Processes of a run, as far as there are cores for them."""
        return min(run.processes, self.cores)


def _bytes(run: Run) -> float:
    size, batch = int(run.what["settings"]["image_size"]), int(run.what["settings"]["batch_size"])
    return (run.processes + 1) * _PROCESS_BYTES + run.processes * batch * size**2 * _PIXEL_BYTES
