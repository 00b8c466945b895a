"""Parts of the method that a setting names: ours, or those that an installed package offers."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import entry_points
from typing import Any


class PartError(ValueError):
    """There is no part of this name."""


def part(argument: str, given: Any, group: str, own: Mapping[str, Any]) -> Any:
    """The part that a setting names.

    A name is never imported: what is not ours must be an entry point of a package that the operator
    has installed. By its class path a part comes as an object, which FLARE has made of a class on
    the allow-list.

    Args:
        argument: Name of the setting, for the error.
        given: A name, or the part itself.
        group: Of entry points, each a part or a class to make one of without arguments.
        own: Name -> part.

    Raises:
        PartError: Neither we nor an installed package has a part of this name.
    """
    if not isinstance(given, str):
        return given
    if given in own:
        return own[given]
    offered = {point.name: point for point in entry_points(group=group)}
    if given not in offered:
        known = (*own, *sorted(offered))
        raise PartError(f"{argument} must be one of {known}; got {given!r}.")
    found = offered[given].load()
    return found() if isinstance(found, type) else found
