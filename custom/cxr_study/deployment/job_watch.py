"""A submitted job from its submission to its end, as the server tells an admin."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from cxr_study.deployment.flare_session import FlareSession
from surgical_aggregation.run_record import RunRecord

POLL = 1.0
"""Seconds between two looks at a job."""

_QUIET = 10.0
"""Seconds from a job's start in which it is asked nothing: before it is up, a question is an error
in the server's logs."""


@dataclass(frozen=True)
class Progress:
    """How far a running job is.

    Attributes:
        rounds: Rounds that it has made.
        best: Record of its best model so far, with "round" and "value"; None: there is none.
        stopped: Whether it stopped early.
    """

    rounds: int = 0
    best: Mapping[str, Any] | None = None
    stopped: bool = False


@dataclass(frozen=True)
class End:
    """How a job ended.

    Attributes:
        meta: What FLARE knows of it.
        lost: Whether the server was restarted under it. FLARE then says that it runs, for ever.
        seen: The last that it said of itself.
    """

    meta: Mapping[str, Any]
    lost: bool
    seen: Progress

    @property
    def completed(self) -> bool:
        """Whether FLARE says that it ended well."""
        return not self.lost and self.meta["status"] == "FINISHED:COMPLETED"


def watch(session: FlareSession, job_id: str, show: Callable[[Progress], None]) -> End:
    """Wait for the end of a job.

    Args:
        session: A session with its server.
        job_id: Its id.
        show: Called with its progress, whenever that has changed.
    """
    seen = Progress()
    ask_from = None
    while True:
        meta = session.meta(job_id)
        if meta["status"].startswith("FINISHED"):
            return End(meta, lost=False, seen=seen)
        scheduled = meta.get("last_schedule_time") or 0.0
        if meta["status"] in ("RUNNING", "DISPATCHED"):
            if scheduled < session.server_started():
                return End(meta, lost=True, seen=seen)
            ask_from = ask_from or time.monotonic() + _QUIET
            if time.monotonic() > ask_from:
                told = session.stats(job_id).get(RunRecord.__name__)
                if told:
                    before, seen = seen, Progress(**told)
                    if seen != before:
                        show(seen)
                elif seen.rounds:  # it is on its way out
                    ask_from = float("inf")
        time.sleep(POLL)
