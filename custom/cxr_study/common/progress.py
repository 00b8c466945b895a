"""Progress of long work on the console: a bar, the rounds of a run, and timed steps.

On a terminal a bar moves; elsewhere (a log file, a pipe) single lines are printed. The server
imports this module, so rich is imported only where something is shown.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

Report = Callable[[int, int], None]
"""Progress callback, called as report(done, total)."""

_NAME, _TEXT = 10, 62  # characters of a step


@contextmanager
def bar(description: str) -> Iterator[Report]:
    """Show a progress bar on standard error while the `with` block runs.

    Without a terminal, a line is printed after each quarter of the work.

    Args:
        description: Text before the bar.

    Yields:
        A callback, called as report(done, total) with counts of any unit.

    Example:
        >>> with bar("decoding images") as report:
        ...     report(1, 2)
    """
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, TimeRemainingColumn

    console = Console(stderr=True)
    quarters = 0
    with _bars(console, MofNCompleteColumn(), TimeRemainingColumn()) as progress:
        task = progress.add_task(description, total=None)

        def report(done: int, total: int) -> None:
            nonlocal quarters
            progress.update(task, completed=done, total=total)
            if not console.is_terminal and total and 4 * done // total > quarters:
                quarters = 4 * done // total
                console.print(f"{description}: {done}/{total}")

        yield report


def round_bars(console: Console, *, transient: bool = False) -> Progress:
    """Bars that `RoundProgress` draws on; to be used as a context manager.

    Args:
        console: Where to draw; without a terminal nothing is drawn.
        transient: Whether the bars disappear at the end of the `with` block.
    """
    from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

    after = (TextColumn("{task.fields[now]}"), TimeElapsedColumn())
    return _bars(console, *after, before=(SpinnerColumn(),), transient=transient)


def _bars(console: Console, *after: Any, before: Any = (), transient: bool = False) -> Progress:
    """Bars between columns of text; disabled without a terminal."""
    from rich.progress import BarColumn, Progress, TextColumn

    columns = (*before, TextColumn("{task.description}"), BarColumn(), *after)
    return Progress(*columns, console=console, transient=transient, disable=not console.is_terminal)


class RoundProgress:
    """Progress of a run in rounds: a bar, or without a terminal a line per round.

    Args:
        progress: See `round_bars`.
        title: What runs.
        total: Number of rounds; 0: none, or unknown.
        made: Rounds that are finished already. Default 0.
    """

    def __init__(self, progress: Progress, title: str, total: int, made: int = 0):
        self.progress = progress
        self.title = title
        self.total = total
        self._printed = made - 1
        self._task = progress.add_task(title, total=total or None, completed=made, now="starting")

    def show(self, made: int, best: Mapping[str, Any] | None, stopped: bool) -> None:
        """Update the bar, or print a line for a new round.

        Args:
            made: Rounds finished.
            best: The latest record of a best model, with its validation loss as "value"; None:
                there is none yet.
            stopped: Whether training has stopped early.
        """
        if not made and not self.total:
            return
        now = f"round {made}/{self.total}" if self.total else f"round {made}"
        if best is not None:
            now += f", best validation BCE {best['value']:.4f}"
        if stopped:
            now += ", stopped early"
        self.progress.update(self._task, completed=made, now=now)
        if made > self._printed and not self.progress.console.is_terminal:
            self._printed = made
            self.progress.console.print(f"{self.title}: {now}", highlight=False)


class Steps:
    """The steps of a long command; each is printed as one line, with its seconds, when it ends.

    Args:
        console: Where to print.

    Example:
        >>> with Steps(console).step("prepare", "two sites") as details:  # doctest: +SKIP
        ...     details.append("port 8002")
        prepare   two sites, port 8002                                              0.1 s
    """

    def __init__(self, console: Console):
        self.console = console

    @contextmanager
    def step(self, name: str, text: str = "", *, alone: bool = True) -> Iterator[list[str]]:
        """Run one step as a `with` block and print its line at the end.

        The line is also printed when an interrupt ends the step, but not when an error does.

        Args:
            name: What the step does, one word.
            text: Details, such as a file or a number of sites. Default: none.
            alone: Whether the step may show a spinner: nothing else moves on the terminal
                meanwhile. Default True.

        Yields:
            The list of details; the block may append to it.
        """
        details = [text] if text else []
        began = time.monotonic()
        with self.console.status(f"{name} ...") if alone else nullcontext():
            try:
                yield details
            except (KeyboardInterrupt, SystemExit):
                self._print(name, [*details, "interrupted"], began)
                raise
        self._print(name, details, began)

    def say(self, text: str) -> None:
        """Print a line between the steps, without markup or wrapping."""
        self.console.print(text, markup=False, highlight=False, soft_wrap=True)

    def _print(self, name: str, details: Sequence[str], began: float) -> None:
        from rich.text import Text

        took = f"{time.monotonic() - began:6.1f} s"
        line = Text.assemble((f"{name:<{_NAME}}", "bold"), f"{', '.join(details):<{_TEXT}} ", took)
        self.console.print(line, highlight=False, soft_wrap=True)
