"""Why a submitted job does not run yet, and when FLARE tries again or gives up, in words."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

TRIES, SHORTEST, LONGEST = 10, 10.0, 600.0
"""FLARE 2.9's scheduler: tries, and seconds after the first, which double up to the longest."""

_TOO_FEW = re.compile(r"(\d+)\)? < min.sites \(?(\d+)")


def sites(meta: Mapping[str, Any]) -> set[str]:
    """Names of the sites that a job is for, by what FLARE knows of it."""
    return {party for parties in meta["deploy_map"].values() for party in parties} - {"server"}


def reasons(meta: Mapping[str, Any]) -> list[str]:
    """Why FLARE did not start a job when it tried, in its own words, each reason once."""
    tries = [entry.partition(": ")[2] for entry in meta.get("schedule_history") or []]
    return list(dict.fromkeys(reason for reason in tries if reason != "scheduled"))


def orphaned(meta: Mapping[str, Any], server_started: float) -> bool:
    """Whether the server was started again under a job; FLARE says for ever that it runs."""
    scheduled = meta.get("last_schedule_time")  # FLARE notes it after the status
    runs = meta["status"] in ("RUNNING", "DISPATCHED")
    return bool(runs and scheduled and scheduled < server_started)


def told(meta: Mapping[str, Any], connected: Collection[str]) -> str:
    """Why a job waits, in plain words and in FLARE's, and when FLARE tries again and gives up.

    Args:
        meta: What FLARE knows of it.
        connected: Names of the sites that are connected to the server.
    """
    away = ", ".join(sorted(sites(meta) - {*connected}))
    missing = f"; not connected: {away}" if away else ""
    if not (said := reasons(meta)[-1:]):
        return f"FLARE has not tried to start it: other jobs run, or no site is connected{missing}"
    plain = "FLARE could not start it"
    if few := _TOO_FEW.search(said[0]):
        plain = f"only {few[1]} of the {few[2]} sites it needs answer and have the GPUs it asks for"
    tries, last = len(meta["schedule_history"]), float(meta["last_schedule_time"])
    pauses = [min(SHORTEST * 2 ** (made - 1), LONGEST) for made in range(tries, TRIES)]
    again, end = (datetime.fromtimestamp(last + sum(them)) for them in (pauses[:1], pauses))
    return (
        f"{plain} (FLARE: {said[0]}){missing}; try {tries} of {TRIES}, the next at "
        f"{again:%H:%M:%S}, and FLARE gives up at {end:%H:%M:%S}"
    )
