"""A line that shows how far a run of rounds is: a bar, or a line per round without a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn


def round_bars(console: Console, *, transient: bool = False) -> Progress:
    """What `RoundProgress` draws on; for a `with` block.

    Args:
        console: Where.
        transient: Whether it goes when the block ends. Default False.
    """
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[now]}"),
        TimeElapsedColumn(),
        console=console,
        transient=transient,
        disable=not console.is_terminal,
    )


class RoundProgress:
    """One run's bar.

    Args:
        progress: See `round_bars`.
        title: What runs.
        total: Rounds to make; 0: none, or a number that is not known.
        made: Rounds made before. Default 0.
    """

    def __init__(self, progress: Progress, title: str, total: int, made: int = 0):
        self.progress = progress
        self.title = title
        self.total = total
        self._told = made - 1
        self._task = progress.add_task(title, total=total or None, completed=made, now="starting")

    def show(self, made: int, best: Mapping[str, Any] | None, stopped: bool) -> None:
        """Show where the run is.

        Args:
            made: Rounds made.
            best: The newest record of a best model, with its "value"; None: there is none yet.
            stopped: Whether it stopped early.
        """
        if not made and not self.total:
            return
        now = f"round {made}/{self.total}" if self.total else f"round {made}"
        if best is not None:
            now += f", best validation BCE {best['value']:.4f}"
        if stopped:
            now += ", stopped early"
        self.progress.update(self._task, completed=made, now=now)
        if made > self._told and not self.progress.console.is_terminal:
            self._told = made
            self.progress.console.print(f"{self.title}: {now}", highlight=False)
