"""Detect sites that have left a run, which FLARE may wait for without limit."""

from __future__ import annotations

import math
import threading
import time
from typing import Any

from nvflare.apis.event_type import EventType
from nvflare.apis.fl_component import FLComponent
from nvflare.apis.fl_constant import ReservedTopic, ReturnCode
from nvflare.apis.fl_context import FLContext
from nvflare.apis.shareable import Shareable

from surgical_aggregation.server.access.job_sites import site_of
from surgical_aggregation.wire.headers import GONE, SIMULATED_JOB

_REQUESTS = 8
"""Heartbeat requests per `silence`: one lost reply must not end a run."""


class SiteWatch(FLComponent):
    """Detect disconnected sites by heartbeat, and put them into the property `GONE`.

    Runs on the server. FLARE reports a restarted site as connected although its job process is
    gone, and waits for it without limit. `SiteWatch` sends FLARE's heartbeat request to each job
    process, and marks a site as gone after `silence` seconds without a reply. A run that stops for
    this reason can be resumed with the site.

    A site is watched from its first task or reply on. Does nothing in FLARE's simulator, where
    sites share processes and may have none for a while.

    Args:
        silence: Seconds without a reply after which a site counts as gone; above 0. Default 120.

    Raises:
        ValueError: `silence` is out of range.
    """

    def __init__(self, silence: float = 120.0):
        super().__init__()
        if not 0 < silence < math.inf:
            raise ValueError(f"silence must be a number of seconds above 0; got {silence!r}.")
        self.silence = silence
        self._ended = threading.Event()
        self._heard: dict[str, float] = {}
        self._gone: set[str] = set()

    def handle_event(self, event_type: str, fl_ctx: FLContext) -> None:
        """Watch from the start of the run to its end."""
        if event_type == EventType.START_RUN and fl_ctx.get_job_id() != SIMULATED_JOB:
            watch = threading.Thread(
                target=self._watch, args=[fl_ctx.get_engine()], name="site_watch", daemon=True
            )
            watch.start()
        elif event_type == EventType.AFTER_TASK_DATA_FILTER and (site := site_of(fl_ctx)):
            self._heard.setdefault(site, time.monotonic())
        elif event_type in (EventType.ABOUT_TO_END_RUN, EventType.END_RUN):
            self._ended.set()

    def _watch(self, engine: Any) -> None:
        while not self._ended.wait(self.silence / _REQUESTS):
            with engine.new_context() as fl_ctx:
                try:
                    self.poll_sites(fl_ctx)
                except Exception as error:  # the watch must outlive a failed request
                    self.log_warning(fl_ctx, f"the heartbeat request failed: {error!r}")

    def poll_sites(self, fl_ctx: FLContext) -> None:
        """Send every site a heartbeat request, and update `GONE`."""
        engine = fl_ctx.get_engine()
        sites = sorted(client.name for client in engine.get_clients())
        answers = engine.send_aux_request(
            sites, ReservedTopic.JOB_HEART_BEAT, Shareable(), self.silence / _REQUESTS, fl_ctx,
            optional=True,
        )  # fmt: skip
        now = time.monotonic()
        for site, answer in (answers or {}).items():
            if answer.get_return_code() == ReturnCode.OK:
                self._heard[site] = now
        gone = {site for site, at in dict(self._heard).items() if now - at > self.silence}
        if gone == self._gone or self._ended.is_set():
            return
        self._gone = gone
        why = (
            f"no heartbeat for {self.silence:.0f} s; a restarted site cannot rejoin this job: "
            "resume the run as a new job"
        )
        fl_ctx.set_prop(GONE, dict.fromkeys(gone, why), private=True, sticky=True)
        silent = f"no heartbeat from {', '.join(sorted(gone))} for {self.silence:.0f} s"
        self.log_warning(fl_ctx, silent if gone else "all sites reply to heartbeats again")
