"""Stopping training or a measurement when its task is aborted."""

from collections.abc import Callable

Stop = Callable[[], bool]
"""Asked after every batch; True ends the work with `Stopped`."""


class Stopped(Exception):
    """Training or a measurement was stopped."""


def never() -> bool:
    """A `Stop` that never says yes."""
    return False


def check(stop: Stop) -> None:
    """Raise `Stopped` if `stop` says yes."""
    if stop():
        raise Stopped
