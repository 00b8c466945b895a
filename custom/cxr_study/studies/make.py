"""Studies from their plan to their runs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from cxr_study.side_by_side import Failure
from cxr_study.studies import plan, schedule
from cxr_study.studies.data_file import StudyData
from cxr_study.studies.live import LiveTable
from cxr_study.studies.machine import Machine
from cxr_study.studies.plan import Selection, StudyError
from cxr_study.studies.run import Run
from cxr_study.studies.run_folder import RUNS
from cxr_study.studies.study_file import Study


@dataclass(frozen=True)
class Made:
    """What was made.

    Attributes:
        runs: Study -> all its runs; two of them may be one, with the same key.
        failures: Runs that failed.
        seconds: Wall time of this time.
    """

    runs: dict[str, list[Run]]
    failures: list[Failure[Run]]
    seconds: float


def make(
    studies: Sequence[Study],
    data: StudyData,
    folder: Path,
    selection: Selection,
    *,
    machine: Machine,
    console: Console,
    project: Path | None = None,
) -> Made:
    """Make the runs of some studies that are not made yet.

    Args:
        studies: Which.
        data: On which data.
        folder: For everything. Studies share the runs that they have in common.
        selection: Which part of each study.
        machine: What the runs may take.
        console: Where to show how far they are.
        project: See `plan.runs`.

    Raises:
        StudyError: They cannot be made.
        ValueError: The data, a knob or the initial body is unusable.
    """
    if " " in str(folder.absolute()):
        raise StudyError(
            f"FLARE's simulator needs a folder without spaces in its path; got "
            f"{str(folder.absolute())!r}. Give another --out."
        )
    began = time.monotonic()
    planned = {study.name: plan.runs(study, data, folder, selection, project) for study in studies}
    unique = {run.key: run for runs in planned.values() for run in reversed(runs)}
    everything = [run for runs in planned.values() for run in runs if unique[run.key] is run]
    with LiveTable(everything, machine, console) as table:
        failures = schedule.run_all(everything, folder / RUNS, machine, table.told)
    return Made(planned, failures, time.monotonic() - began)
