"""A `Site` of somebody's own, by the name of its class; needs no Keras."""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from cxr_study.common.errors import InputError
from cxr_study.common.named_parts import by_path
from surgical_aggregation.site.contract.site import Site

SITE_NAME = "{SITE_NAME}"
"""Stands for a site's name in its arguments, as in a job of FLARE's."""


def own_site(name: str, arguments: Sequence[str]) -> Site:
    """Make a site.

    Args:
        name: module:Class. Modules of the current folder are found, too.
        arguments: NAME=VALUE; a value is JSON, such as 224 or true, else a text.

    Raises:
        InputError: There is no such class, it is no `Site`, or it takes other arguments.

    Example:
        >>> own_site("cxr_study.training.chest_xray_site:ChestXraySite", ["site=nih"]).site
        'nih'
    """
    if not name.partition(":")[2]:
        raise InputError(f"a site needs module:Class, e.g. my.module:MySite; got {name!r}.")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    made = by_path(name)
    if not (inspect.isclass(made) and issubclass(made, Site)) or inspect.isabstract(made):
        raise InputError(f"{name} must be a class of surgical_aggregation's Site, and whole.")
    try:
        site: Site = made(**dict(map(_argument, arguments)))
    except TypeError as error:
        raise InputError(f"{name} cannot be made: {error}. Give --arg NAME=VALUE.") from None
    return site


def own_sites(name: str, arguments: Sequence[str], sites: Sequence[str]) -> dict[str, Site]:
    """Make a site by each of some names, which stand for `{SITE_NAME}` in the arguments.

    Raises:
        ValueError: See `own_site`.
    """
    return {
        site: own_site(name, [text.replace(SITE_NAME, site) for text in arguments])
        for site in sites
    }


def _argument(text: str) -> tuple[str, object]:
    name, equals, value = text.partition("=")
    if not equals:
        raise InputError(f"--arg needs NAME=VALUE; got {text!r}.")
    try:
        return name, json.loads(value)
    except json.JSONDecodeError:
        return name, value
