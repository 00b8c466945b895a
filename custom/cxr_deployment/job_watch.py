"""Watch a job from its submission to its end: its progress, why it waits, why it failed."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from cxr_deployment.flare_session import FlareSession
from cxr_deployment.local_workspaces import Workspaces
from cxr_study.runs import run_failure
from cxr_study.runs.job_results import Progress, progress, read_events, rounds_run
from cxr_study.runs.run_failure import Failure, Party
from surgical_aggregation.server.records.run_record import RunRecord
from surgical_aggregation.site.local_notes import notes_file
from surgical_aggregation.wire.untrusted_text import one_line

ABORTED = "FINISHED:ABORTED"
"""FLARE's status of a job that an admin aborted."""

NEVER_RAN = ("FINISHED:FAILED_TO_RUN", "FINISHED:CANT_SCHEDULE", "FINISHED:ABANDONED")
"""FLARE's statuses of a job that could not be started."""

NOT_LOADED = "FINISHED:ABNORMAL"
"""FLARE's status if a site's process ended while loading the job, or the server's was killed."""

POLL, LONGEST = 1.0, 10.0
"""Shortest and longest interval between two polls of a job, seconds."""

_POLL_DIVISOR = 4
"""The interval between polls is the time since the last change, divided by this."""

_QUIET = 10.0
"""Seconds after a change of status without queries: a starting job logs an error for each."""

_HEARTBEAT = 60.0
"""Seconds after which the reason why a job waits is reported again, although unchanged, and a job
that no longer answers is queried again."""

_LATE = 30.0
"""Seconds in which FLARE adds the reason of a failed start, after it has set the status."""

_UNANSWERED = 3
"""Unanswered queries in a row after which a job that answered before is probably ending: each
further one would log an error at the server."""

TRIES, SHORTEST, LONGEST_PAUSE = 10, 10.0, 600.0
"""FLARE 2.9's scheduler: number of attempts; first and longest pause between them, seconds. Each
pause is twice the one before."""

_SHOWN = 10_000
"""Characters of a reason that are shown. Sites write reasons, so terminal escapes are not."""

_TOO_FEW = re.compile(r"(\d+)\)? < min.sites \(?(\d+)")


@dataclass(frozen=True)
class End:
    """How a job ended.

    Attributes:
        meta: FLARE's metadata of the job, with its "status".
        lost: Whether the server was restarted during the job. FLARE then lists it as running
            permanently.
        seen: The last progress observed.
    """

    meta: Mapping[str, Any]
    lost: bool
    seen: Progress

    @property
    def completed(self) -> bool:
        """Whether FLARE's status is that of a completed job."""
        return not self.lost and self.meta["status"] == "FINISHED:COMPLETED"

    def describe(self, made: int = 0) -> list[str]:
        """Short facts for the console: status, rounds, best validation loss.

        Args:
            made: Rounds of earlier jobs of the run, which are added. Default 0.
        """
        facts = ["the server was restarted" if self.lost else str(self.meta["status"])]
        if self.seen.rounds:
            facts.append(f"{made + self.seen.rounds} rounds seen")
        if self.seen.best is not None:
            facts.append(f"best validation BCE {self.seen.best['value']:.4f}")
        return facts


def watch(
    session: FlareSession,
    job_id: str,
    show: Callable[[Progress], None],
    say: Callable[[str], None],
    *,
    server: Path | None = None,
) -> End:
    """Wait until a job has ended.

    Args:
        session: With the server.
        job_id: The job.
        show: Called with the job's progress whenever it changes.
        say: Called with the reason why the job waits: at each of FLARE's attempts to start it, and
            every minute.
        server: The server's workspace, if it is on this machine: progress is then read from the
            job's record. Default None: the server is queried.

    Returns:
        How it ended. A job during which the server was restarted counts as ended (`End.lost`).

    Raises:
        SessionError: The server is not reachable, or refuses a query.
    """
    seen, queried = Progress(), _query_progress(session, job_id)
    status, tries = "", 0
    changed = time.monotonic()
    due = changed + _QUIET
    while True:
        meta = session.meta(job_id)
        if meta["status"] != status:
            status, changed = str(meta["status"]), time.monotonic()
        if status.startswith("FINISHED"):
            return End(_with_reason(session, job_id, meta), lost=False, seen=seen)
        tried = len(meta.get("schedule_history") or [])
        if status == "SUBMITTED" and (tried != tries or time.monotonic() > due):
            due, tries = time.monotonic() + _HEARTBEAT, tried
            say(f"job {job_id} waits: {describe_wait(meta, session.sites())}")
        if status in ("RUNNING", "DISPATCHED"):
            now = progress(read_events(server / job_id)) if server else next(queried)
            if now is not None and now != seen:
                seen, changed = now, time.monotonic()
                show(seen)
            if is_orphaned(meta, session.server_started()):
                return End(meta, lost=True, seen=seen)
        time.sleep(min(max(POLL, (time.monotonic() - changed) / _POLL_DIVISOR), LONGEST))


def _with_reason(session: FlareSession, job_id: str, meta: Mapping[str, Any]) -> Mapping[str, Any]:
    """FLARE's metadata of an ended job, with the reason, which FLARE adds after the status."""
    deadline = time.monotonic() + _LATE
    while meta["status"] == NEVER_RAN[0] and not meta.get("job_deploy_detail"):
        if time.monotonic() > deadline:
            break
        time.sleep(POLL)
        meta = session.meta(job_id)
    return meta


def _query_progress(session: FlareSession, job_id: str) -> Iterator[Progress | None]:
    """Yield the progress that a running job reports; None before it is up and while it ends."""
    begin, answered, unanswered = time.monotonic() + _QUIET, False, 0
    while True:
        stats = None
        if time.monotonic() >= begin:
            stats = session.stats(job_id).get(RunRecord.__name__)
            answered, unanswered = answered or bool(stats), 0 if stats else unanswered + 1
            if answered and unanswered >= _UNANSWERED:
                begin = time.monotonic() + _HEARTBEAT
        yield Progress(stats["rounds"], stats["best"], stats["stopped"]) if stats else None


def explain(job_id: str, end: End, server: Path | None, workspaces: Workspaces) -> Failure:
    """Find out why a job failed.

    Args:
        job_id: Its id.
        end: How it ended.
        server: The server's folder in the downloaded result; None: it could not be downloaded.
        workspaces: Those on this machine: in a POC all, in production usually none.

    Returns:
        The reason, and whether another attempt would fail in the same way.
    """
    status = str(end.meta["status"])
    if end.lost:
        restarted = "the server was restarted while it ran; FLARE lists it as running permanently."
        return Failure(restarted, final=False)
    if status == ABORTED:
        return Failure("it was aborted by an admin.", final=True)
    if status in NEVER_RAN:
        reason = f"it could not be started: {start_failure(end.meta)}"
        return Failure(reason, final=True)
    known = run_failure.parties(workspaces, job_id, f"{job_id}/error_log.txt")
    if server is not None:
        known["server"] = Party(server / "error_log.txt")
    service = workspaces.get("server")
    lost = () if end.completed else run_failure.lost_processes(job_id, server, service)
    found = run_failure.explain(server, known, lost)
    reason = found.reason or f"{status}, and no file on this machine gives a reason."
    if service is not None and not found.reason:
        reason += f" The server's log is {service / 'log.txt'}"
    if not workspaces:
        reason += (
            f"\nA site's own log is <its workspace>/{job_id}/error_log.txt, and its notes <its "
            f"workspace>/{notes_file(job_id)}, at the site."
        )
    made = end.seen.rounds or (server and rounds_run(server))
    return Failure(reason, not made and (found.final or status == NOT_LOADED))


def sites_of(meta: Mapping[str, Any]) -> set[str]:
    """Names of the sites that a job is deployed to, from FLARE's metadata of it."""
    return {party for parties in meta["deploy_map"].values() for party in parties} - {"server"}


def is_orphaned(meta: Mapping[str, Any], server_started: float) -> bool:
    """Whether the server was restarted during a job, which FLARE then lists as running permanently.

    Args:
        meta: FLARE's metadata of the job.
        server_started: When the server was started, seconds since 1970.
    """
    scheduled = meta.get("last_schedule_time")  # FLARE writes it after the status
    running = meta["status"] in ("RUNNING", "DISPATCHED")
    return bool(running and scheduled and scheduled < server_started)


def start_failure(meta: Mapping[str, Any]) -> str:
    """Why a job with a status in `NEVER_RAN` was not started, from FLARE's metadata of it."""
    details = meta.get("job_deploy_detail") or _schedule_reasons(meta)
    failed = [one_line(d, _SHOWN) for d in details if d.partition(": ")[2] != "OK"]
    return "; ".join(failed) or str(meta["status"])


def describe_wait(meta: Mapping[str, Any], connected: Collection[str]) -> str:
    """Why a job waits, with FLARE's own reason, and when FLARE tries again and gives up.

    Args:
        meta: FLARE's metadata of the job.
        connected: Names of the sites that are connected to the server.
    """
    absent = ", ".join(sorted(sites_of(meta) - {*connected}))
    missing = f"; not connected: {absent}" if absent else ""
    if not (latest := _schedule_reasons(meta)[-1:]):
        return f"FLARE has not tried to start it: other jobs run, or no site is connected{missing}"
    reason = "FLARE could not start it"
    if few := _TOO_FEW.search(latest[0]):
        reason = (
            f"only {few[1]} of the {few[2]} sites it needs answer and have the GPUs it asks for"
        )
    tries, last = len(meta["schedule_history"]), float(meta["last_schedule_time"])
    pauses = [min(SHORTEST * 2 ** (made - 1), LONGEST_PAUSE) for made in range(tries, TRIES)]
    again, end = (datetime.fromtimestamp(last + sum(waits)) for waits in (pauses[:1], pauses))
    return (
        f"{reason} (FLARE: {latest[0]}){missing}; try {tries} of {TRIES}, the next at "
        f"{again:%H:%M:%S}, and FLARE gives up at {end:%H:%M:%S}"
    )


def _schedule_reasons(meta: Mapping[str, Any]) -> list[str]:
    """FLARE's reasons for not starting a job at its attempts so far, each once, latest last."""
    history = [one_line(entry, _SHOWN) for entry in meta.get("schedule_history") or []]
    tries = [entry.partition(": ")[2] for entry in history]
    return list(dict.fromkeys(reason for reason in tries if reason != "scheduled"))
