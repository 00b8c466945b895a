"""Why a submitted job does not run yet, and when FLARE tries again or gives up, in words."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Any

SCHEDULED = "scheduled"
"""What FLARE notes of the try that starts a job."""

TRIES, SHORTEST, LONGEST = 10, 10.0, 600.0
"""FLARE 2.9's scheduler: tries, and seconds after the first, which double up to the longest."""

_PLAIN: Mapping[str, str] = MappingProxyType(
    {
        r"connected sites \((\d+)\) < min_sites \((\d+)\)": "{0} of its sites are connected, and "
        "it needs {1}",
        r"ok sites (\d+) < min sites (\d+)": "{0} of its sites can take it now, and it needs {1}; "
        "the others are away, or lack the GPUs or memory that it asks for",
        r"missing required site (\S+)": "it cannot do without {0}, which is not connected",
        r"required sites: (\[.*?\]) don't have": "it cannot do without {0}, short of the GPUs or "
        "memory that it asks for",
    }
)
"""FLARE's reason -> the same in plain words."""


def sites(meta: Mapping[str, Any]) -> set[str]:
    """Names of the sites that a job is for, by what FLARE knows of it."""
    return {party for parties in meta["deploy_map"].values() for party in parties} - {"server"}


def reasons(meta: Mapping[str, Any]) -> list[str]:
    """Why FLARE did not start a job when it tried, in its own words, each reason once."""
    tries = [entry.partition(": ")[2] for entry in meta.get("schedule_history") or []]
    return list(dict.fromkeys(why for why in tries if why != SCHEDULED))


def waiting(meta: Mapping[str, Any], connected: Collection[str], running: int, now: float) -> str:
    """Why a job waits, in a sentence.

    Args:
        meta: What FLARE knows of it.
        connected: Names of the sites that are connected to the server.
        running: Number of jobs that run.
        now: Seconds since 1970.
    """
    away = ", ".join(sorted(sites(meta) - {*connected}))
    told = f" Not connected: {away}." if away else ""
    tries = len(meta.get("schedule_history") or [])
    if not tries:
        why = "no site is connected" if not connected else f"{running} other jobs run"
        return f"{meta['status']}: FLARE has not tried to start it yet; {why}.{told}"
    said = reasons(meta)[-1]
    match = next((found for words in _PLAIN if (found := re.search(words, said))), None)
    plain = _PLAIN[match.re.pattern].format(*match.groups()) if match else "FLARE cannot start it"
    passed = now - float(meta["last_schedule_time"])
    pauses = [min(SHORTEST * 2 ** (made - 1), LONGEST) for made in range(tries, TRIES)]
    left = f"tries again {_in(pauses[0] - passed)}, and " if pauses else ""
    return (
        f"{meta['status']}: {plain}.{told} FLARE says {said!r} at try {tries} of {TRIES}; it "
        f"{left}gives up {_in(sum(pauses) - passed)}."
    )


def _in(seconds: float) -> str:
    if seconds < 1:
        return "at any moment"
    return f"in {seconds:.0f} s" if seconds < 120 else f"in {seconds / 60:.0f} min"
