"""Entry points that installed packages offer, and what to install for a missing package."""

import logging
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib.metadata import EntryPoint, PackageNotFoundError, entry_points, requires
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

_warn_once = cache(logging.getLogger(__name__).warning)


class PartError(ValueError):
    """A setting names a part that does not exist."""


class EntryPointError(PartError):
    """An entry point of an installed package cannot be used."""


def load(point: EntryPoint, kind: Any) -> Any:
    """Load an entry point: a part, or a class that is called without arguments to make it.

    Args:
        point: The entry point.
        kind: Type of the part.

    Raises:
        EntryPointError: Its module cannot be imported, or the part is of another type.
    """
    try:
        loaded = point.load()
        part = loaded() if isinstance(loaded, type) else loaded
        if not isinstance(part, kind):
            raise TypeError(f"a {kind.__name__} is needed; got {part!r:.60}")
    except Exception as error:
        absent = isinstance(error, ModuleNotFoundError) and missing(error)
        raise EntryPointError(
            f"{point.name!r} ({point.value}), which the package {point.dist and point.dist.name} "
            f"offers in the group of entry points {point.group!r}, cannot be used: "
            + (absent or f"{type(error).__name__}: {error}. Correct or remove the package.")
        ) from error
    return part


def offered(group: str, kind: Any) -> Iterator[tuple[str, Any]]:
    """Load the entry points of a group with their names; broken ones are logged and left out."""
    for point in entry_points(group=group):
        try:
            yield point.name, load(point, kind)
        except EntryPointError as error:
            _warn_once(str(error))


def offered_body(name: str | None, *, simulated: bool = False) -> Path | None:
    """File of an initial body that an installed package offers; None: there is none.

    An entry point of `INITIAL_BODIES` is a function with this signature. In FLARE's simulator it
    may offer a body although none is named, for a job on the package's own data.

    Args:
        name: Name of the body; None or "": none is named.
        simulated: Whether the job runs in FLARE's simulator. Default False.
    """
    found = (offer(name, simulated=simulated) for _, offer in offered(INITIAL_BODIES, Callable))
    return next((body for body in found if body is not None), None)


def find_part(argument: str, given: str | T, group: str, own: Mapping[str, T], kind: Any) -> T:
    """Find the part (a strategy, weighting, reader, ...) that a setting names.

    A name is never imported: it must be in `own`, or an entry point of a package that the operator
    has installed. A part that a job gives by class path arrives as an object, which FLARE has made
    from a class on its allow-list.

    Args:
        argument: Name of the setting, for the error.
        given: A name, or the part itself.
        group: Group of entry points, see `load`.
        own: Name -> part of this software.
        kind: Type of a part that is an entry point.

    Returns:
        The part.

    Raises:
        PartError: There is no part of this name; or a class path is where FLARE builds no object.
        EntryPointError: The part of this name cannot be used; also a PartError.
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
    return load(offers[given], kind)


def missing(error: ModuleNotFoundError) -> str | None:
    """Error message for a module that is not installed.

    Returns:
        The package, and the extra that installs it; None: no extra does.
    """
    module = str(error.name).partition(".")[0]
    package = _CALLED.get(module, module)
    asked = re.compile(rf"{re.escape(package)}(?![\w-]).*extra == [\"'](\w+)", re.IGNORECASE)
    try:
        needed = requires(_PROJECT) or ()
    except PackageNotFoundError:  # run from a folder
        needed = ()
    extra = next(filter(None, map(asked.match, needed)), None)
    if extra is None:
        return None
    return (
        f"the package {package} is not installed. It comes with an extra: pip install "
        f"'{_PROJECT}[{extra[1]}]'"
    )
