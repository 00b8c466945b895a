"""Entry points that installed packages offer, and what to install for a missing package."""

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
"""Module -> name of its package, if the two differ."""


def offered(group: str) -> Iterator[Any]:
    """Load the entry points of a group, without those whose module is not installed."""
    for entry in entry_points(group=group):
        with suppress(ModuleNotFoundError):
            yield entry.load()


def offered_body(name: str | None, *, simulated: bool = False) -> Path | None:
    """File of an initial body that an installed package offers; None: there is none.

    An entry point of `INITIAL_BODIES` is a function with this signature. In FLARE's simulator it
    may offer a body although none is named, for a job on the package's own data.

    Args:
        name: Name of the body; None or "": none is named.
        simulated: Whether the job runs in FLARE's simulator. Default False.
    """
    found = (offer(name, simulated=simulated) for offer in offered(INITIAL_BODIES))
    return next((body for body in found if body is not None), None)


class PartError(ValueError):
    """A setting names a part that does not exist."""


def find_part(argument: str, given: str | T, group: str, own: Mapping[str, T]) -> T:
    """Find the part (a strategy, weighting, reader, ...) that a setting names.

    A name is never imported: it must be in `own`, or an entry point of a package that the operator
    has installed. A part that a job gives by class path arrives as an object, which FLARE has made
    from a class on its allow-list.

    Args:
        argument: Name of the setting, for the error.
        given: A name, or the part itself.
        group: Group of entry points, each a part or a class that is called without arguments.
        own: Name -> part of this software.

    Returns:
        The part.

    Raises:
        PartError: There is no part of this name; or a class path is where FLARE builds no object.
    """
    if isinstance(given, dict):
        raise PartError(
            f"{argument} must be a name, or a class path directly in a component's args, where "
            f"FLARE builds the object; got {given!r} deeper inside."
        )
    if not isinstance(given, str):
        return given
    if given in own:
        return own[given]
    offers = {point.name: point for point in entry_points(group=group)}
    if given not in offers:
        known = (*own, *sorted(offers))
        raise PartError(f"{argument} must be one of {known}; got {given!r}.")
    loaded: Any = offers[given].load()
    found: T = loaded() if isinstance(loaded, type) else loaded
    return found


def missing(error: ModuleNotFoundError) -> str | None:
    """Error message for a module that is not installed.

    Returns:
        The package, and the extra that installs it; None: no extra does.
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
