"""What packages beside the method offer by name, and what to install where one is missing."""

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib.metadata import entry_points, requires
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")

INITIAL_BODIES = "surgical_aggregation.initial_bodies"
"""Group of entry points, see `offered_body`."""

_PROJECT = "surgical-aggregation"
_CALLED = {
    "PIL": "pillow",
    "gdcm": "python-gdcm",
    "sklearn": "scikit-learn",
    "tenseal": "nvflare[he]",
    "yaml": "pyyaml",
}
"""Module -> name of its package, where the two differ."""


def offered(group: str) -> Iterator[Any]:
    """What installed packages offer under a group of entry points; without what is not there."""
    for entry in entry_points(group=group):
        with suppress(ModuleNotFoundError):
            yield entry.load()


def offered_body(name: str | None, *, simulated: bool = False) -> Path | None:
    """File of an initial body that an installed package offers; None where none does.

    An entry point of `INITIAL_BODIES` is a function with the same arguments and result. It may
    offer a body that is not named where a job runs in FLARE's simulator, on data of the package's
    own.

    Args:
        name: Name of the body; None or "": none is named.
        simulated: Whether FLARE's simulator asks. Default False.
    """
    found = (offer(name, simulated=simulated) for offer in offered(INITIAL_BODIES))
    return next((body for body in found if body is not None), None)


class PartError(ValueError):
    """There is no part of this name."""


def part(argument: str, given: str | T, group: str, own: Mapping[str, T]) -> T:
    """The part of the method or the application that a setting names.

    A name is never imported: what is not ours must be an entry point of a package that the operator
    has installed. By its class path a part comes as an object, which FLARE has made of a class on
    the allow-list.

    Args:
        argument: Name of the setting, for the error.
        given: A name, or the part itself.
        group: Of entry points, each a part or a class to make one of without arguments.
        own: Name -> part of ours.

    Raises:
        PartError: Neither we nor an installed package has a part of this name.
    """
    if not isinstance(given, str):
        return given
    if given in own:
        return own[given]
    offers = {point.name: point for point in entry_points(group=group)}
    if given not in offers:
        known = (*own, *sorted(offers))
        raise PartError(f"{argument} must be one of {known}; got {given!r}.")
    found: Any = offers[given].load()
    return found() if isinstance(found, type) else found


def missing(error: ModuleNotFoundError) -> str | None:
    """Say what to install.

    Returns:
        The package and the extra that has it; None where no extra does.
    """
    module = str(error.name).partition(".")[0]
    package = _CALLED.get(module, module)
    asked = re.compile(rf"{re.escape(package)}(?![\w-]).*extra == [\"'](\w+)", re.IGNORECASE)
    extra = next(filter(None, map(asked.match, requires(_PROJECT) or ())), None)
    if extra is None:
        return None
    return (
        f"the package {package} is not installed. It comes with an extra: pip install "
        f"'{_PROJECT}[{extra[1]}]'"
    )
