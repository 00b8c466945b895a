"""Watch a job from its submission to its end: how far it is, why it waits, why it failed."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from cxr_study.deployment.at_hand import Workspaces
from cxr_study.deployment.flare_session import FlareSession
from cxr_study.runs import run_failure
from cxr_study.runs.job_results import Progress, progress, read_events, rounds_run
from cxr_study.runs.run_failure import Failure, Party
from surgical_aggregation.server.records.run_record import RunRecord
from surgical_aggregation.site.local_notes import notes_file

ABORTED = "FINISHED:ABORTED"
NEVER_RAN = ("FINISHED:FAILED_TO_RUN", "FINISHED:CANT_SCHEDULE", "FINISHED:ABANDONED")
NOT_LOADED = "FINISHED:ABNORMAL"
"""A site's process ended while it loaded the job, or the server's was killed."""

POLL, LONGEST = 1.0, 10.0
"""Seconds between two looks at a job: at first, and at most where it has long not changed."""

_SHARE = 4
"""Of the time since the last change the share in which a job is not looked at."""

_QUIET = 10.0
"""Seconds in which a job is asked nothing: before it is up, a question is an error in its log."""

_HEARTBEAT = 60.0
"""Seconds after which a job that waits is spoken of again, though nothing has changed."""

_LATE = 5.0
"""Seconds in which FLARE gives the reason of a job that it could not start, after its status."""

_UNANSWERED = 3
"""Questions in a row after which a job that has answered before is taken to be on its way out."""

TRIES, SHORTEST, LONGEST_PAUSE = 10, 10.0, 600.0
"""FLARE 2.9's scheduler: tries, and seconds after the first, which double up to the longest."""

_TOO_FEW = re.compile(r"(\d+)\)? < min.sites \(?(\d+)")


@dataclass(frozen=True)
class End:
    """How a job ended.

    Attributes:
        meta: What FLARE knows of it.
        lost: Whether the server was restarted under it. FLARE then says that it runs, for ever.
        seen: Its last progress.
    """

    meta: Mapping[str, Any]
    lost: bool
    seen: Progress

    @property
    def completed(self) -> bool:
        """Whether FLARE says that it ended well."""
        return not self.lost and self.meta["status"] == "FINISHED:COMPLETED"

    def told(self, made: int = 0) -> list[str]:
        """It in a few words, after `made` rounds of earlier jobs."""
        told = ["the server was restarted" if self.lost else str(self.meta["status"])]
        if self.seen.rounds:
            told.append(f"{made + self.seen.rounds} rounds seen")
        if self.seen.best is not None:
            told.append(f"best validation BCE {self.seen.best['value']:.4f}")
        return told


def watch(
    session: FlareSession,
    job_id: str,
    show: Callable[[Progress], None],
    say: Callable[[str], None],
    *,
    server: Path | None = None,
) -> End:
    """Wait for the end of a job; show its progress when that has changed, say why it waits.

    With the server's workspace at hand the job's record is read there; else the server is asked.
    """
    seen, asking = Progress(), _by_asking(session, job_id)
    status, tries = "", 0
    changed = time.monotonic()
    due = changed + _QUIET
    while True:
        meta = session.meta(job_id)
        if meta["status"] != status:
            status, changed = str(meta["status"]), time.monotonic()
        if status.startswith("FINISHED"):
            return End(_whole(session, job_id, meta), lost=False, seen=seen)
        tried = len(meta.get("schedule_history") or [])
        if status == "SUBMITTED" and (tried != tries or time.monotonic() > due):
            due, tries = time.monotonic() + _HEARTBEAT, tried
            say(f"job {job_id} waits: {waits(meta, session.sites())}")
        if status in ("RUNNING", "DISPATCHED"):
            told = progress(read_events(server / job_id)) if server else next(asking)
            if told is not None and told != seen:
                seen, changed = told, time.monotonic()
                show(seen)
            if orphaned(meta, session.server_started()):
                return End(meta, lost=True, seen=seen)
        time.sleep(min(max(POLL, (time.monotonic() - changed) / _SHARE), LONGEST))


def _whole(session: FlareSession, job_id: str, meta: Mapping[str, Any]) -> Mapping[str, Any]:
    """What FLARE knows of a job that ended, with the reason that it writes after the status."""
    deadline = time.monotonic() + _LATE
    while meta["status"] == NEVER_RAN[0] and not meta.get("job_deploy_detail"):
        if time.monotonic() > deadline:
            break
        time.sleep(POLL)
        meta = session.meta(job_id)
    return meta


def _by_asking(session: FlareSession, job_id: str) -> Iterator[Progress | None]:
    """The progress of a job by asking it, from when it should be up until it has ended."""
    begin, answered, unanswered = time.monotonic() + _QUIET, False, 0
    while True:
        stats = None
        ending = answered and unanswered == _UNANSWERED
        if time.monotonic() >= begin and not ending:
            stats = session.stats(job_id).get(RunRecord.__name__)
            answered, unanswered = answered or bool(stats), 0 if stats else unanswered + 1
        yield Progress(stats["rounds"], stats["best"], stats["stopped"]) if stats else None


def explain(job_id: str, end: End, server: Path | None, workspaces: Workspaces) -> Failure:
    """Find out why a job did not end well.

    Args:
        job_id: Its id.
        end: How it ended.
        server: The server's folder of its results; None: they could not be downloaded.
        workspaces: As far as at hand: in a POC all, elsewhere none.
    """
    status = str(end.meta["status"])
    if end.lost:
        restarted = "the server was restarted under it, and takes it to be running for ever."
        return Failure(restarted, final=False)
    if status == ABORTED:
        return Failure("it was aborted by an admin.", final=True)
    if status in NEVER_RAN:
        reason = f"it could not be started: {not_started(end.meta)}"
        return Failure(reason, final=True)
    known = run_failure.parties(workspaces, job_id, f"{job_id}/error_log.txt")
    if server is not None:
        known["server"] = Party(server / "error_log.txt")
    service = workspaces.get("server")
    lost = () if end.completed else run_failure.lost_processes(job_id, server, service)
    found = run_failure.explain(server, known, lost)
    reason = found.reason or f"{status}, and nothing at hand says why."
    if service is not None and not found.reason:
        reason += f" The server's log is {service / 'log.txt'}"
    if not workspaces:
        reason += (
            f"\nA site's own log is <its workspace>/{job_id}/error_log.txt, and its notes <its "
            f"workspace>/{notes_file(job_id)}, at the site."
        )
    made = end.seen.rounds or (server and rounds_run(server))
    return Failure(reason, not made and (found.final or status == NOT_LOADED))


def sites(meta: Mapping[str, Any]) -> set[str]:
    """Names of the sites that a job is for, by what FLARE knows of it."""
    return {party for parties in meta["deploy_map"].values() for party in parties} - {"server"}


def orphaned(meta: Mapping[str, Any], server_started: float) -> bool:
    """Whether the server was started again under a job; FLARE says for ever that it runs."""
    scheduled = meta.get("last_schedule_time")  # FLARE notes it after the status
    runs = meta["status"] in ("RUNNING", "DISPATCHED")
    return bool(runs and scheduled and scheduled < server_started)


def not_started(meta: Mapping[str, Any]) -> str:
    """Why a job in one of `NEVER_RAN` was not started, by what FLARE knows of it."""
    details = meta.get("job_deploy_detail") or _reasons(meta)
    return "; ".join(d for d in details if not d.endswith(": OK")) or str(meta["status"])


def waits(meta: Mapping[str, Any], connected: Collection[str]) -> str:
    """Why a job waits, in plain words and in FLARE's, and when FLARE tries again and gives up.

    Args:
        meta: What FLARE knows of it.
        connected: Names of the sites that are connected to the server.
    """
    away = ", ".join(sorted(sites(meta) - {*connected}))
    missing = f"; not connected: {away}" if away else ""
    if not (said := _reasons(meta)[-1:]):
        return f"FLARE has not tried to start it: other jobs run, or no site is connected{missing}"
    plain = "FLARE could not start it"
    if few := _TOO_FEW.search(said[0]):
        plain = f"only {few[1]} of the {few[2]} sites it needs answer and have the GPUs it asks for"
    tries, last = len(meta["schedule_history"]), float(meta["last_schedule_time"])
    pauses = [min(SHORTEST * 2 ** (made - 1), LONGEST_PAUSE) for made in range(tries, TRIES)]
    again, end = (datetime.fromtimestamp(last + sum(them)) for them in (pauses[:1], pauses))
    return (
        f"{plain} (FLARE: {said[0]}){missing}; try {tries} of {TRIES}, the next at "
        f"{again:%H:%M:%S}, and FLARE gives up at {end:%H:%M:%S}"
    )


def _reasons(meta: Mapping[str, Any]) -> list[str]:
    """Why FLARE did not start a job when it tried, in its own words, each reason once."""
    tries = [entry.partition(": ")[2] for entry in meta.get("schedule_history") or []]
    return list(dict.fromkeys(reason for reason in tries if reason != "scheduled"))
