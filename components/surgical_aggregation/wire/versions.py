"""Software versions of server and sites, and which are compatible.

A site's major and minor version of surgical-aggregation must equal the server's; otherwise it does
not participate. The server logs all other differences.
"""

from collections.abc import Mapping
from contextlib import suppress
from importlib import metadata

from surgical_aggregation import __version__
from surgical_aggregation.wire.untrusted_text import one_line

OURS = "surgical-aggregation"

PACKAGES = (OURS, "nvflare", "keras", "tensorflow")
"""Packages whose versions can change the results of a run."""

Versions = Mapping[str, str]
"""Package -> version, for the installed ones of `PACKAGES`."""


def installed_versions() -> dict[str, str]:
    """Versions of `PACKAGES` in this environment, without importing them."""
    found = {OURS: __version__}
    for package in PACKAGES[1:]:
        with suppress(metadata.PackageNotFoundError):
            found[package] = metadata.version(package)
    return found


def parse_versions(declared: object) -> dict[str, str]:
    """The usable versions in a site's declaration, safe for a log."""
    if not isinstance(declared, Mapping):
        return {}
    return {name: one_line(v) for name in PACKAGES if isinstance(v := declared.get(name), str)}


def version_fault(theirs: Versions) -> str | None:
    """Why a site with these versions cannot participate; None: it can."""
    got = theirs.get(OURS, "unknown")
    if _minor(got) == _minor(__version__):
        return None
    return (
        f"its version of {OURS} is {got}; the server's is {__version__}, and major and minor "
        "version must be equal. Install the server's version there"
    )


def differences(versions: Mapping[str, Versions]) -> list[str]:
    """Packages with different versions among parties, one text for each.

    Example:
        >>> differences({"server": {"nvflare": "2.9.0"}, "nih": {"nvflare": "2.9.1"}})
        ['nvflare 2.9.0 (server), 2.9.1 (nih)']
    """
    found = []
    for package in PACKAGES:
        parties: dict[str, list[str]] = {}
        for party, installed in versions.items():
            if package in installed:
                parties.setdefault(installed[package], []).append(party)
        if len(parties) > 1:
            each = ", ".join(f"{version} ({', '.join(who)})" for version, who in parties.items())
            found.append(f"{package} {each}")
    return found


def _minor(version: str) -> list[str]:
    return version.split(".")[:2]
