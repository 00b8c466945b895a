"""Make a custom `Site` from the name of its class. Needs no Keras."""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from cxr_study.common.errors import InputError
from cxr_study.common.named_parts import load_object
from surgical_aggregation.site.contract.site import Site

SITE_NAME = "{SITE_NAME}"
"""Placeholder for a site's name in its arguments, as in FLARE's job configurations."""


def own_site(name: str, arguments: Sequence[str]) -> Site:
    """Make a custom site.

    Args:
        name: module:Class. The current folder is searched for modules as well.
        arguments: NAME=VALUE, for the class's constructor. A value that is JSON, such as 224 or
            true, is parsed; any other is a string.

    Raises:
        InputError: There is no such class, it is not a concrete subclass of `Site`, or its
            constructor has other arguments.

    Example:
        >>> own_site("cxr_study.training.chest_xray_site:ChestXraySite", ["site=nih"]).site
        'nih'
    """
    if not name.partition(":")[2]:
        raise InputError(f"a site needs module:Class, e.g. my.module:MySite; got {name!r}.")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    made = load_object(name)
    if not (inspect.isclass(made) and issubclass(made, Site)) or inspect.isabstract(made):
        raise InputError(f"{name} must be a concrete subclass of surgical_aggregation's Site.")
    try:
        site: Site = made(**dict(map(_argument, arguments)))
    except TypeError as error:
        raise InputError(f"{name} cannot be made: {error}. Give --arg NAME=VALUE.") from None
    return site


def own_sites(name: str, arguments: Sequence[str], sites: Sequence[str]) -> dict[str, Site]:
    """Make a custom site per name.

    Args:
        name: module:Class, as in `own_site`.
        arguments: As in `own_site`; `{SITE_NAME}` in them is replaced by the site's name.
        sites: Names of the sites.

    Returns:
        Name -> site.

    Raises:
        InputError: See `own_site`.
    """
    return {
        site: own_site(name, [text.replace(SITE_NAME, site) for text in arguments])
        for site in sites
    }


def _argument(text: str) -> tuple[str, object]:
    """Split NAME=VALUE, and parse the value if it is JSON."""
    name, equals, value = text.partition("=")
    if not equals:
        raise InputError(f"--arg needs NAME=VALUE; got {text!r}.")
    try:
        return name, json.loads(value)
    except json.JSONDecodeError:
        return name, value
