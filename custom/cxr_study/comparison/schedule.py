"""Makes the trainings of a comparison side by side, and keeps their outcomes."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from cxr_study.comparison import outcome
from cxr_study.comparison.grid import Cell
from cxr_study.comparison.outcome import Outcome
from cxr_study.runs import run_queue
from cxr_study.runs.run_queue import Failure, Program, Told

COMMAND = (sys.executable, "-m", "cxr_study.comparison.cell")


def run_all(
    cells: Sequence[Cell], folder: Path, *, at_once: int, told: Told[Cell]
) -> tuple[dict[str, Outcome], list[Failure[Cell]]]:
    """Train what is not trained yet; see `run_queue.run_all`.

    Args:
        cells: In this order; all have different names.
        folder: Of the comparison. results/ holds the outcomes, one file each, and runs/ the jobs,
            workspaces, models and logs.
        at_once: How many side by side, at least 1.
        told: What they do.

    Returns:
        Name of a cell -> outcome, and the failures.

    Raises:
        ComparisonError: An outcome that is there is of other settings.
    """
    results, runs = folder / "results", folder / "runs"
    results.mkdir(parents=True, exist_ok=True)
    runs.mkdir(exist_ok=True)

    def kept(cell: Cell) -> Path:
        return results / f"{cell.name}.json"

    def prepare(cell: Cell) -> Program:
        spec = runs / f"{cell.name}.json"
        spec.write_text(json.dumps(cell.to_json()), encoding="utf-8")
        command = [*COMMAND, str(spec), str(runs / cell.name), str(kept(cell))]
        return Program(command, runs / f"{cell.name}.log")

    failures = run_queue.run_all(
        cells,
        prepare=prepare,
        is_made=lambda cell: outcome.read(kept(cell), cell) is not None,
        has_room=lambda _, beside: len(beside) < at_once,
        told=told,
    )
    failed = {failure.training.name for failure in failures}
    outcomes = {
        cell.name: found
        for cell in cells
        if cell.name not in failed and (found := outcome.read(kept(cell), cell))
    }
    return outcomes, failures
