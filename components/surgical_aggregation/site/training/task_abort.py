"""Stopping training or a measurement when its task is aborted."""

from collections.abc import Callable

Stop = Callable[[], bool]
"""Called after every batch; True ends the work with `Stopped`."""


class Stopped(Exception):
    """Training or a measurement was stopped."""


def never() -> bool:
    """A `Stop` that is always False."""
    return False


def check(stop: Stop) -> None:
    """Raise `Stopped` if `stop()` is true."""
    if stop():
        raise Stopped
