"""Whether settings and names of sites go with a job."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from cxr_study.common.spelling import nearest

ALIKE = ("backbone", "image_size", "hidden", "union", "strategy")
"""Knobs of a site that must be the same at all of them."""

Settings = Mapping[str, object]
"""Knob -> value."""

_SITE = re.compile(r"\w[\w.@-]*")


class JobError(ValueError):
    """A job folder, a knob or a site name is not usable."""


def check_names(sites: Sequence[str]) -> None:
    """Refuse what FLARE could not call a site, or two of them alike.

    Raises:
        JobError: There is no name, a strange one, or one twice.
    """
    strange = [site for site in sites if not _SITE.fullmatch(site)]
    if not sites or strange or len(set(sites)) < len(sites):
        raise JobError(
            "sites need names of letters, digits and -._@, each another; got "
            f"{', '.join(map(repr, sites)) or 'none'}."
        )


def check_number(sites: Sequence[str], needed: int) -> None:
    """Refuse fewer sites than FLARE waits for.

    Raises:
        JobError: They are fewer than `needed`.
    """
    if len(sites) < needed:
        raise JobError(
            f"this job needs the results of {needed} sites; got {', '.join(sites)}. Add sites, or "
            f"set min_clients={len(sites)}."
        )


def check_kinds(settings: Settings, known: Settings, whose: str) -> None:
    """Refuse knobs that are not there, and values of another kind than their own.

    Args:
        settings: Knob -> value.
        known: Knob -> its own value, for the knobs that are there.
        whose: The job or site that has them, for the message.

    Raises:
        JobError: A knob is not known, or its value is of another kind.
    """
    for name, value in settings.items():
        if name not in known:
            raise JobError(f"{whose} has no knob {name!r}; {nearest(name, tuple(known))}.")
        _check_kind(name, value, known[name])


def check_own(site: str, values: Settings, sites: Sequence[str]) -> None:
    """Refuse knobs that a site cannot have for itself.

    Args:
        site: Its name.
        values: Knob -> value, at that site alone.
        sites: Names of all sites that take part.

    Raises:
        JobError: The site takes no part, or a knob must be the same at every site.
    """
    if site not in sites:
        raise JobError(
            f"knobs are given for site {site!r}, which takes no part; "
            f"{nearest(site, tuple(sites))}."
        )
    for name in ALIKE:
        if name in values:
            raise JobError(
                f"knob {name!r} must be the same at every site; it is given for site {site!r}. "
                f"Set it for all of them: {name}={values[name]}"
            )


def _check_kind(name: str, value: object, own: object) -> None:
    kinds: dict[type, str] = {bool: "true or false", int: "a whole number", float: "a number"}
    if type(value) is not type(own) and not (type(own) is float and type(value) is int):
        kind = kinds.get(type(own), "a text")
        raise JobError(f"knob {name!r} needs {kind}, as the job's own {own!r} is; got {value!r}.")
