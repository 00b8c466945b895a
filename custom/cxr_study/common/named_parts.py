"""Parts by name: ours, those that installed packages offer, and where a person types, any module's.

A package offers parts by entry points. A name that comes with a job is never imported: whoever
installed the package has allowed what it offers, and `module:name` is for the hospital's own
commands and files alone.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from cxr_study.common.errors import InputError
from cxr_study.common.spelling import nearest


def part(what: str, name: str, group: str, own: Mapping[str, Any]) -> Any:
    """The part that a name stands for: one of our own, or an entry point of a group.

    Args:
        what: The kind of part, for the error.
        name: Its name.
        group: Of entry points.
        own: Name -> our part.

    Raises:
        InputError: Neither we nor an installed package has a part of this name.
    """
    if name in own:
        return own[name]
    offered = entry_points(group=group)
    if name not in offered.names:
        known = (*own, *sorted(offered.names))
        raise InputError(f"there is no {what} {name!r}; {nearest(name, known)}.")
    return offered[name].load()


def by_path(name: str) -> Any:
    """What `module:name` stands for; modules of the current folder are found, too.

    Raises:
        InputError: There is no such module, or nothing of this name in it.
    """
    module, _, attribute = name.partition(":")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        return getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise InputError(
            f"there is no {attribute} in module {module!r} ({error}). Modules are looked for in "
            "the current folder and where Python has its packages."
        ) from None
