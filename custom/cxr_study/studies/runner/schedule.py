"""Makes the runs of studies, as many side by side as cores and memory allow."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from cxr_study.runs import run_queue
from cxr_study.runs.run_queue import Failure, Program, Told
from cxr_study.studies.plan.run import Run
from cxr_study.studies.plan.run_folder import LOG_FILE, SPEC_FILE, read_result
from cxr_study.studies.runner.machine import Machine

COMMAND = (sys.executable, "-m", "cxr_study.studies.runner.one_run")


def run_all(
    runs: Sequence[Run], folder: Path, machine: Machine, told: Told[Run]
) -> list[Failure[Run]]:
    """Make the runs that are not made yet; see `run_queue.run_all`.

    Args:
        runs: In this order, where there is room; each key once.
        folder: Each run has a folder in it, named by its key; see `run_folder`.
        machine: What they may take.
        told: What they do.
    """

    def prepare(run: Run) -> Program:
        place = folder / run.key
        place.mkdir(parents=True, exist_ok=True)
        spec = {"name": run.name, "what": run.what, "where": run.where}
        text = json.dumps(spec, indent=1, ensure_ascii=False)
        (place / SPEC_FILE).write_text(f"{text}\n", encoding="utf-8")
        return Program([*COMMAND, str(place)], place / LOG_FILE)

    return run_queue.run_all(
        runs,
        prepare=prepare,
        is_made=lambda run: read_result(folder / run.key) is not None,
        has_room=machine.has_room,
        told=told,
    )
