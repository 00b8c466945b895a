"""Progress bars for long work, on standard error."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

Report = Callable[[int, int], None]
"""Called as report(done, total)."""


@contextmanager
def bar(description: str) -> Iterator[Report]:
    """Show a bar while the body runs; where nobody watches (no terminal), a line per quarter.

    Example:
        >>> with bar("decoding images") as report:
        ...     report(1, 2)
        ...     report(2, 2)
    """
    from rich.console import Console  # here, for the server imports this module

    console = Console(stderr=True)
    if not console.is_terminal:
        yield _lines(console, description)
        return
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(),
    )  # fmt: skip
    with Progress(*columns, console=console) as progress:
        task = progress.add_task(description, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


def _lines(console: Console, description: str) -> Report:
    quarters = 0

    def report(done: int, total: int) -> None:
        nonlocal quarters
        if total and 4 * done // total > quarters:
            quarters = 4 * done // total
            console.print(f"{description}: {done}/{total}")

    return report
