"""How far long work is: a bar, the rounds of a run, and steps with their seconds.

On a terminal a bar moves; elsewhere there is a line now and then. The server imports this module,
so rich is imported only where something is shown.
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
"""Called as report(done, total)."""

_NAME, _TEXT = 10, 62  # characters of a step


@contextmanager
def bar(description: str) -> Iterator[Report]:
    """Show a bar on standard error while the body runs; without a terminal, a line per quarter.

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
    """What `RoundProgress` draws on, for a `with` block, at whose end transient bars go."""
    from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

    after = (TextColumn("{task.fields[now]}"), TimeElapsedColumn())
    return _bars(console, *after, before=(SpinnerColumn(),), transient=transient)


def _bars(console: Console, *after: Any, before: Any = (), transient: bool = False) -> Progress:
    """Bars between columns of text; nothing where there is no terminal."""
    from rich.progress import BarColumn, Progress, TextColumn

    columns = (*before, TextColumn("{task.description}"), BarColumn(), *after)
    return Progress(*columns, console=console, transient=transient, disable=not console.is_terminal)


class RoundProgress:
    """How far a run of rounds is: a bar, or a line per round without a terminal.

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
        """Show the rounds made, the last record of a best model (None: none), an early stop."""
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


class Steps:
    """The steps of a long command: a line on a console for each when it is over."""

    def __init__(self, console: Console):
        self.console = console

    @contextmanager
    def step(self, name: str, text: str = "", *, alone: bool = True) -> Iterator[list[str]]:
        """One step, the body of a `with` block; it may append more text to the list that it gets.

        It is told when it is over, and when an interrupt ends it; not when an error does.

        Args:
            name: What it does, one word.
            text: What with.
            alone: Whether nothing else moves on the terminal meanwhile. Default True.
        """
        said = [text] if text else []
        began = time.monotonic()
        with self.console.status(f"{name} ...") if alone else nullcontext():
            try:
                yield said
            except (KeyboardInterrupt, SystemExit):
                self._tell(name, [*said, "interrupted"], began)
                raise
        self._tell(name, said, began)

    def say(self, text: str) -> None:
        """A line between the steps, as it is."""
        self.console.print(text, markup=False, highlight=False, soft_wrap=True)

    def _tell(self, name: str, said: Sequence[str], began: float) -> None:
        from rich.text import Text

        took = f"{time.monotonic() - began:6.1f} s"
        line = Text.assemble((f"{name:<{_NAME}}", "bold"), f"{', '.join(said):<{_TEXT}} ", took)
        self.console.print(line, highlight=False, soft_wrap=True)
