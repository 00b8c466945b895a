"""A comparison from its plan to its page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)

from cxr_study.comparison import claims, plan, schedule, summary
from cxr_study.comparison.check import check
from cxr_study.comparison.grid import Cell, ComparisonError, Setup
from cxr_study.comparison.summary import Summary
from cxr_study.comparison.write import write
from cxr_study.jobs.methods import Row
from cxr_study.runs.run_queue import DONE, FAILS, KEPT
from cxr_study.runs.training_process import ROUND
from surgical_aggregation import __version__


def compare(
    rows: Sequence[Row],
    seeds: int,
    setup: Setup,
    folder: Path,
    *,
    site_files: Path | None,
    initial_body: Path | None,
    at_once: int,
    console: Console,
) -> tuple[Summary, Path]:
    """Train every row with every seed, unless that is done already, and write what came out.

    Args:
        rows: Of the table.
        seeds: How many.
        setup: What all rows have in common.
        folder: For everything; may hold an earlier part of the same comparison.
        site_files: Folder of <site>.yaml; None: the embedded phantom study.
        initial_body: Checkpoint; None: the embedded study's.
        at_once: Trainings side by side.
        console: Where to show how far it is.

    Returns:
        What was found, and the path of the page.

    Raises:
        ComparisonError: It cannot be done, or `folder` holds another one.
        ValueError: A site file, a knob or the initial body is unusable.
    """
    size = check(setup, initial_body)
    if " " in str(folder.absolute()):
        raise ComparisonError(
            f"FLARE's simulator needs a folder without spaces in its path; got "
            f"{str(folder.absolute())!r}. Give another --out."
        )
    cells = plan.cells(
        rows, seeds, setup, site_files=site_files, initial_body=initial_body, size=size
    )
    equal = plan.equal_classes_cells(
        setup, cells[0].site_files, cells[0].initial_body, folder / "equal-classes-sites"
    )
    with _Shown(len(cells) + len(equal), console) as shown:
        outcomes, failures = schedule.run_all(
            [*cells, *equal], folder, at_once=at_once, told=shown.told
        )
    trained = [outcomes[cell.name] for cell in cells if cell.name in outcomes]
    found = Summary(
        setup=setup,
        seeds=seeds,
        phantom=site_files is None,
        lines=summary.lines(rows, trained),
        verdicts=summary.verdicts(trained),
        equal_classes=claims.equal_classes(equal, outcomes),
        failures={
            failure.training.name: f"{failure.reason} See {failure.log}" for failure in failures
        },
        seconds=sum(outcome.seconds for outcome in outcomes.values()),
        version=__version__,
    )
    return found, write(found, trained, folder)


class _Shown:
    """How far a comparison is: a bar for all trainings, and a line for each that runs."""

    def __init__(self, total: int, console: Console):
        self._total = total
        self._console = console
        self._tasks: dict[str, TaskID] = {}
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=console,
        )

    def __enter__(self) -> _Shown:
        self._progress.start()
        self._all = self._progress.add_task("trainings", total=self._total)
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def told(self, cell: Cell, doing: str) -> None:
        """Show what a training does; see `side_by_side.Told`."""
        task = self._tasks.pop(cell.name, None)
        if doing in (DONE, FAILS, KEPT):
            if task is not None:
                self._progress.remove_task(task)
            self._progress.advance(self._all)
            if doing != KEPT and not self._console.is_terminal:  # where a bar is not drawn
                self._console.print(f"{cell.name}: {doing}", highlight=False, markup=False)
            return
        if task is None:
            task = self._progress.add_task(f"  {cell.name}", total=cell.setup.most_rounds)
        self._tasks[cell.name] = task
        if doing.startswith(ROUND):
            self._progress.update(task, completed=int(doing.removeprefix(ROUND)))
