"""Versions of the software at server and sites, and which may train together.

The rule: major and minor version of surgical-aggregation must be the server's; another site has no
part in the run. Any other difference is named in the server's log.
"""

from collections.abc import Mapping
from contextlib import suppress
from importlib import metadata

from surgical_aggregation import __version__
from surgical_aggregation.wire.untrusted_text import one_line

OURS = "surgical-aggregation"

PACKAGES = (OURS, "nvflare", "keras", "tensorflow")
"""What decides the numbers of a run."""

Versions = Mapping[str, str]
"""Package -> version, of those of `PACKAGES` that are installed."""


def installed_versions() -> dict[str, str]:
    """Versions in this process; nothing is imported for it."""
    found = {OURS: __version__}
    for package in PACKAGES[1:]:
        with suppress(metadata.PackageNotFoundError):
            found[package] = metadata.version(package)
    return found


def told_versions(told: object) -> dict[str, str]:
    """What a site tells of its versions, whatever that is, safe for a log."""
    if not isinstance(told, Mapping):
        return {}
    return {name: one_line(of) for name in PACKAGES if isinstance(of := told.get(name), str)}


def version_fault(theirs: Versions) -> str | None:
    """Why a site with these versions cannot take part; None: it can."""
    theirs_is = theirs.get(OURS)
    if theirs_is is not None and _minor(theirs_is) == _minor(__version__):
        return None
    got = "an earlier one, which tells none" if theirs_is is None else theirs_is
    return (
        f"its version of {OURS} is {got}; the server's is {__version__}, and major and minor "
        "version must be the same. Install the server's there"
    )


def differences(versions: Mapping[str, Versions]) -> list[str]:
    """Packages of which parties have different versions, each with who has which.

    Example:
        >>> differences({"server": {"nvflare": "2.9.0"}, "nih": {"nvflare": "2.9.1"}})
        ['nvflare 2.9.0 (server), 2.9.1 (nih)']
    """
    found = []
    for package in PACKAGES:
        parties: dict[str, list[str]] = {}
        for party, of in versions.items():
            if package in of:
                parties.setdefault(of[package], []).append(party)
        if len(parties) > 1:
            each = ", ".join(f"{version} ({', '.join(who)})" for version, who in parties.items())
            found.append(f"{package} {each}")
    return found


def _minor(version: str) -> list[str]:
    return version.split(".")[:2]
