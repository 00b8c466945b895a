"""The steps of a long command, each with its seconds."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from rich.console import Console
from rich.text import Text

_NAME, _TEXT = 10, 62


class Steps:
    """Prints a line for every step when it is over.

    Args:
        console: Where to.
    """

    def __init__(self, console: Console):
        self.console = console

    @contextmanager
    def step(self, name: str, text: str = "", *, alone: bool = True) -> Iterator[list[str]]:
        """One step, the body of a `with` block.

        Args:
            name: What it does, one word.
            text: What with; the body may append more to the list that it gets.
            alone: Whether nothing else moves on the terminal meanwhile. Default True.

        Example:
            >>> with Steps(Console()).step("start") as said:
            ...     said.append("server and 2 sites")
            start     server and 2 sites                                               0.0 s
        """
        said = [text] if text else []
        began = time.monotonic()
        with self.console.status(f"{name} ...") if alone else nullcontext():
            yield said
        line = Text(f"{name:<{_NAME}}", "bold")
        line.append(f"{', '.join(said):<{_TEXT}} ", "default")
        line.append(f"{time.monotonic() - began:6.1f} s", "default")
        self.console.print(line, highlight=False, soft_wrap=True)
