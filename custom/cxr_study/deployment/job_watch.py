"""Watch a job from its submission to its end, as the server tells an admin."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from cxr_study.deployment import job_queue
from cxr_study.deployment.flare_session import FlareSession
from cxr_study.runs.job_results import read_events
from surgical_aggregation.server.records.run_record import RunRecord

POLL, LONGEST = 1.0, 10.0
"""Seconds between two looks at a job: at first, and at most where it has long not changed."""

_SHARE = 4
"""Of the time since the last change the share in which a job is not looked at."""

_QUIET = 10.0
"""Seconds in which a job is asked nothing: before it is up, a question is an error in its log."""

_HEARTBEAT = 60.0
"""Seconds after which a job that waits is spoken of again, though nothing has changed."""

_UNANSWERED = 3
"""Questions in a row after which a job that has answered before is taken to be on its way out."""


@dataclass(frozen=True)
class Progress:
    """Rounds that a job has made, the record of its best model so far, whether it stopped early."""

    rounds: int = 0
    best: Mapping[str, Any] | None = None
    stopped: bool = False


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
    ask = _Asking(session, job_id) if server is None else partial(_by_record, server / job_id)
    seen, queue = Progress(), _Queue(session, job_id, say)
    status, changed = None, time.monotonic()
    while True:
        meta = session.meta(job_id)
        queue.look(meta)
        if meta["status"] != status:
            status, changed = meta["status"], time.monotonic()
        if meta["status"].startswith("FINISHED"):
            return End(meta, lost=False, seen=seen)
        if meta["status"] in ("RUNNING", "DISPATCHED"):
            told = ask()
            if told is not None and told != seen:
                seen, changed = told, time.monotonic()
                show(seen)
            if job_queue.orphaned(meta, session.server_started()):
                return End(meta, lost=True, seen=seen)
        time.sleep(min(max(POLL, (time.monotonic() - changed) / _SHARE), LONGEST))


class _Queue:
    """What is said of a job that waits: when FLARE has tried to start it, and now and then."""

    def __init__(self, session: FlareSession, job_id: str, say: Callable[[str], None]):
        self.session, self.job_id, self.say = session, job_id, say
        self.due, self.tries = time.monotonic() + _QUIET, 0

    def look(self, meta: Mapping[str, Any]) -> None:
        """Say why it waits, if there is news."""
        tries = len(meta.get("schedule_history") or [])
        news = tries != self.tries or time.monotonic() > self.due
        if meta["status"] == "SUBMITTED" and news:
            self.due, self.tries = time.monotonic() + _HEARTBEAT, tries
            self.say(f"job {self.job_id} waits: {job_queue.told(meta, self.session.sites())}")


def _by_record(folder: Path) -> Progress | None:
    """The progress of a job by its record, in the server's folder of it."""
    events = read_events(folder)
    if not events:  # not there yet, or put away already
        return None
    named = [event["event"] for event in events]
    best = [event for event in events if event["event"] in ("best", "best_dropped")][-1:]
    dropped = not best or best[0]["event"] == "best_dropped"
    return Progress(named.count("round"), None if dropped else best[0], "stopped" in named)


class _Asking:
    """The progress of a job by asking it, from when it should be up until it has ended."""

    def __init__(self, session: FlareSession, job_id: str):
        self.session, self.job_id = session, job_id
        self.begin = 0.0
        self.answered, self.unanswered = False, 0

    def __call__(self) -> Progress | None:
        self.begin = self.begin or time.monotonic() + _QUIET
        ending = self.answered and self.unanswered == _UNANSWERED
        if time.monotonic() < self.begin or ending:
            return None
        stats = self.session.stats(self.job_id).get(RunRecord.__name__)
        if stats is None:
            self.unanswered += 1
            return None
        self.answered, self.unanswered = True, 0
        return Progress(stats["rounds"], stats["best"], stats["stopped"])
