"""The process of one training, for the process that started it; see `side_by_side`.

Its standard output says how far it is (`ROUND`) and why it failed (`FAILED`). It ends when its
standard input does: with whoever started it.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable

ROUND = "round "
"""How a line on standard output begins that says how many rounds are made."""

FAILED = "failed: "
"""How the last line on standard output begins that says why a training failed."""

Tell = Callable[[int], None]
"""Called with the number of rounds made so far."""


def main(train: Callable[[Tell], None], errors: tuple[type[Exception], ...]) -> int:
    """Make the training of this process, so that it can be told to end; its exit code.

    Where a job failed with one of `errors`, a ValueError or an OSError, that is said in one line,
    and the code is 1; any other error has its trace.
    """
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    threading.Thread(target=_end_with_input, daemon=True).start()
    said = 0

    def tell(rounds: int) -> None:
        nonlocal said
        if rounds != said:
            said = rounds
            print(f"{ROUND}{rounds}", flush=True)

    in_one_line: tuple[type[Exception], ...] = (ValueError, OSError, *errors)
    try:
        train(tell)
    except in_one_line as error:
        print(FAILED + " ".join(str(error).split()), flush=True)
        return 1
    return 0


def _end_with_input() -> None:
    """End this process when whoever started it has gone, be it killed."""
    while os.read(sys.stdin.fileno(), 1024):  # sys.stdin itself would be locked when this ends
        pass
    os.kill(os.getpid(), signal.SIGTERM)
