"""The status of a deployed system, as text: the admin's kit, the server, sites and jobs."""

from __future__ import annotations

import time
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from cryptography import x509

from cxr_deployment import job_watch, local_workspaces
from cxr_deployment.flare_session import FlareSession, SessionError
from cxr_deployment.job_watch import NEVER_RAN
from cxr_deployment.local_workspaces import Workspaces
from cxr_study.runs.job_results import json_lines, read_events
from surgical_aggregation.server.records.run_record import RECORD_FILE
from surgical_aggregation.wire.untrusted_text import one_line

_MB = 1e6
_ORPHANED = (
    ": the server was restarted while it ran, and FLARE keeps this status: the job does no harm, "
    "but can neither be aborted nor deleted. Resume it with `surgagg deploy watch`; `surgagg "
    "deploy jobs` at the server removes it"
)


def status_lines(session: FlareSession, places: Workspaces) -> Iterator[str]:
    """Describe the system, a line each.

    Args:
        session: An open session with the server.
        places: The workspaces on this machine; they add free disk space, and the last answer of
            each site to a job's first task.

    Yields:
        The admin's kit with the expiry of its certificate; the server; each site that is connected,
        has a job, or has answered one; each job, oldest first, with id, name, status, and the
        reason if it waits or was not started.

    Raises:
        SessionError: The server refuses a query, or is not reachable.
    """
    certificate = (session.kit / "startup" / "client.crt").read_bytes()
    end = x509.load_pem_x509_certificate(certificate).not_valid_after_utc
    days = (end - datetime.now(timezone.utc)).days
    yield (
        f"{session.kit.name}: certificate until {end:%Y-%m-%d}, {days} days; "
        f"{_free(session.kit)} where its kit is"
    )
    versions: Mapping[str, str] = {}
    with suppress(SessionError):  # older kits do not grant the right
        versions = session.versions()
    here = f"; {_free(places['server'])}" if "server" in places else ""
    started, jobs = session.server_started(), session.jobs()
    flare = {party: f"; FLARE {one_line(version)}" for party, version in versions.items()}
    since = datetime.fromtimestamp(started)
    yield f"server: up since {since:%Y-%m-%d %H:%M}{flare.get('server', '')}{here}"
    seen, connected, declared = session.last_seen(), session.sites(), _declared(places)
    known = {site for meta in jobs for site in job_watch.sites_of(meta)} | declared.keys()
    for site in sorted(known | seen.keys()):
        state = "not connected"
        if site in seen:
            state = "connected" if site in connected else "silent"
            state += f", last seen {max(0, time.time() - seen[site]):.0f} s ago"
        last = declared.get(site)
        answer = f"; answer of {last['date']}: {describe_answer(last)}" if last else ""
        yield f"{site}: {state}{flare.get(site, '')}{answer}"
    for meta in jobs:
        status, reason = str(meta["status"]), ""
        if status == "SUBMITTED":
            reason = f": {job_watch.describe_wait(meta, connected)}"
        elif status in NEVER_RAN:
            reason = f": {job_watch.start_failure(meta)}"
        elif job_watch.is_orphaned(meta, started):
            reason = _ORPHANED
        yield f"{meta['job_id']}  {one_line(str(meta['name']))}  {status}{reason}"


def _free(folder: Path) -> str:
    return f"{local_workspaces.free_bytes(folder) / _MB:,.0f} MB free"


def _declared(places: Workspaces) -> dict[str, dict[str, Any]]:
    """Site -> its last event "declared" in the records of the server's workspace and job store."""
    if "server" not in places:
        return {}
    folders = [job for job in places["server"].iterdir() if job.is_dir()]
    store = local_workspaces.job_store(places["server"])
    archives = store.glob("*/workspace") if store is not None else []
    records = [*map(read_events, folders), *map(_archived, archives)]
    found = [e for events in records for e in events if e["event"] == "declared"]
    return {event["site"]: event for event in sorted(found, key=lambda event: str(event["date"]))}


def _archived(workspace: Path) -> list[dict[str, Any]]:
    """Events of a job from its zipped workspace in the job store; none if it is not readable."""
    with suppress(OSError, zipfile.BadZipFile):
        return json_lines(zipfile.Path(workspace, RECORD_FILE))
    return []


def describe_answer(declared: Mapping[str, Any]) -> str:
    """Describe a site's answer to the check before training.

    Args:
        declared: The site's event "declared" or "silent" in the record, with as far as known
            "versions", "free_disk" (bytes), "certificate_days" and the "reason" why it cannot
            participate.

    Example:
        >>> describe_answer({"reason": None, "free_disk": 5e9})
        'can participate (5.0 GB free)'
    """
    versions, disk, days = (
        declared.get(name) for name in ("versions", "free_disk", "certificate_days")
    )
    facts = [f"{package} {version}" for package, version in (versions or {}).items()]
    facts += [] if disk is None else [f"{disk / 1e9:,.1f} GB free"]
    facts += [] if days is None else [f"certificate for {days} days"]
    reason = declared.get("reason")
    verdict = f"cannot participate: {reason}" if reason else "can participate"
    return f"{verdict} ({', '.join(facts)})" if facts else verdict
