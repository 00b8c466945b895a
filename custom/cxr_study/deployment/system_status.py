"""The state of a system as an admin sees it: server, sites, jobs, and the admin's own kit."""

from __future__ import annotations

import time
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from cryptography import x509

from cxr_study.deployment import at_hand, job_watch
from cxr_study.deployment.at_hand import Workspaces
from cxr_study.deployment.flare_session import FlareSession, SessionError
from cxr_study.deployment.job_watch import NEVER_RAN
from cxr_study.runs.job_results import json_lines, read_events
from surgical_aggregation.server.records.run_record import RECORD_FILE

_MB = 1e6
_ORPHANED = (
    ": the server was started again under it, and FLARE keeps it so: it can neither be aborted nor "
    "deleted, and does no harm. Go on with `surgagg deploy watch`; `surgagg deploy jobs` at the "
    "server removes it"
)


def lines(session: FlareSession, places: Workspaces) -> Iterator[str]:
    """A line for the admin's kit, the server, each site that is connected or has a job, each job.

    Jobs come the oldest first, with id, name, state, and a reason where they need one.
    """
    certificate = (session.kit / "startup" / "client.crt").read_bytes()
    end = x509.load_pem_x509_certificate(certificate).not_valid_after_utc
    days = (end - datetime.now(timezone.utc)).days
    yield (
        f"{session.kit.name}: certificate until {end:%Y-%m-%d}, {days} days; "
        f"{_free(session.kit)} where its kit is"
    )
    versions: Mapping[str, str] = {}
    with suppress(SessionError):  # kits of before give nobody the right to ask
        versions = session.versions()
    here = f"; {_free(places['server'])}" if "server" in places else ""
    started, jobs = session.server_started(), session.jobs()
    flare = {who: f"; FLARE {version}" for who, version in versions.items()}
    since = datetime.fromtimestamp(started)
    yield f"server: up since {since:%Y-%m-%d %H:%M}{flare.get('server', '')}{here}"
    seen, connected, declared = session.last_seen(), session.sites(), _declared(places)
    known = {site for meta in jobs for site in job_watch.sites(meta)} | declared.keys()
    for site in sorted(known | seen.keys()):
        state = "not connected"
        if site in seen:
            state = "connected" if site in connected else "silent"
            state += f", last seen {max(0, time.time() - seen[site]):.0f} s ago"
        said = declared.get(site)
        itself = f"; on {said['date']} it said: {answer(said)}" if said else ""
        yield f"{site}: {state}{flare.get(site, '')}{itself}"
    for meta in jobs:
        status, reason = str(meta["status"]), ""
        if status == "SUBMITTED":
            reason = f": {job_watch.waits(meta, connected)}"
        elif status in NEVER_RAN:
            reason = f": {job_watch.not_started(meta)}"
        elif job_watch.orphaned(meta, started):
            reason = _ORPHANED
        yield f"{meta['job_id']}  {meta['name']}  {status}{reason}"


def _free(folder: Path) -> str:
    return f"{at_hand.free(folder) / _MB:,.0f} MB free"


def _declared(places: Workspaces) -> dict[str, dict[str, Any]]:
    """Site -> what it last declared, by the records in the server's workspace and job store."""
    if "server" not in places:
        return {}
    folders = [job for job in places["server"].iterdir() if job.is_dir()]
    store = at_hand.job_store(places["server"])
    archives = store.glob("*/workspace") if store is not None else []
    records = [*map(read_events, folders), *map(_archived, archives)]
    found = [e for events in records for e in events if e["event"] == "declared"]
    return {event["site"]: event for event in sorted(found, key=lambda event: str(event["date"]))}


def _archived(workspace: Path) -> list[dict[str, Any]]:
    """Events of a job, by its workspace in the job store, which is zipped."""
    with suppress(OSError, zipfile.BadZipFile):
        return json_lines(zipfile.Path(workspace, RECORD_FILE))
    return []


def answer(declared: Mapping[str, Any]) -> str:
    """A site's line "declared" or "silent" of the record, in words."""
    versions, disk, days = (
        declared.get(name) for name in ("versions", "free_disk", "certificate_days")
    )
    facts = [f"{package} {version}" for package, version in (versions or {}).items()]
    facts += [] if disk is None else [f"{disk / 1e9:,.1f} GB free"]
    facts += [] if days is None else [f"certificate for {days} days"]
    reason = declared.get("reason")
    can = f"cannot take part: {reason}" if reason else "can take part"
    return f"{can} ({', '.join(facts)})" if facts else can
