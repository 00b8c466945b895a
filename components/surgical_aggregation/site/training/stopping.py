"""Ending training or a measurement before it is done, as an aborted task wants it."""

from collections.abc import Callable

Stop = Callable[[], bool]
"""Asked after every batch; where it says yes, what is being done ends with `Stopped`."""


class Stopped(Exception):
    """Training or a measurement was ended before it was done."""


def never() -> bool:
    """A `Stop` that never says yes."""
    return False


def check(stop: Stop) -> None:
    """Ask once.

    Raises:
        Stopped: It says yes.
    """
    if stop():
        raise Stopped
