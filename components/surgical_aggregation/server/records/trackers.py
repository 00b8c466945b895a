"""Names of what can keep the metrics that the sites send; see `tracking`."""

from importlib.util import find_spec

TRACKERS = ("tensorboard", "mlflow")
NONE = "none"


class TrackingError(ValueError):
    """Metrics cannot be kept as they are asked to."""


def check(tracking: str) -> None:
    """Refuse an unknown tracker.

    Args:
        tracking: One of `TRACKERS`, or `NONE`.

    Raises:
        TrackingError: It is neither.
    """
    if tracking not in (*TRACKERS, NONE):
        raise TrackingError(
            f"tracking must be one of {', '.join((*TRACKERS, NONE))}; got {tracking!r}."
        )


def check_installed(tracking: str) -> None:
    """Refuse a tracker whose package is not installed here.

    Args:
        tracking: One of `TRACKERS`, or `NONE`.

    Raises:
        TrackingError: Its package is missing.
    """
    if tracking != NONE and find_spec(tracking) is None:
        raise TrackingError(
            f"tracking = {tracking!r} needs the package {tracking} at the server, which is not "
            f"there. Install it (pip install {tracking}), or set tracking to another of "
            f"{', '.join((*TRACKERS, NONE))}."
        )
