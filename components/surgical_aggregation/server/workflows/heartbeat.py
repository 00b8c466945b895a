"""Which sites of a run are still alive: FLARE may wait for others for ever."""

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

_LOOKS = 8
"""Requests per time of silence: one lost answer must not end a run."""


class SiteWatch(FLComponent):
    """Notice which sites of a run are gone, so that nobody waits for them (see `GONE`).

    Runs on the server. A site that is started again takes no part in the running job any more, but
    FLARE sees it connected and waits for its result for ever. So every site's job process gets
    FLARE's own heartbeat request. A run that ends for it can be continued with the site.

    A site is watched from its first task or answer on. Does nothing in FLARE's simulator, where a
    site may have no process while others have their turn.

    Args:
        silence: Seconds without an answer after which a site is gone. Default 120.
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
        while not self._ended.wait(self.silence / _LOOKS):
            with engine.new_context() as fl_ctx:
                try:
                    self.look(fl_ctx)
                except Exception as error:  # a watch that ended would be one more silence
                    self.log_warning(fl_ctx, f"could not look after the sites: {error!r}")

    def look(self, fl_ctx: FLContext) -> None:
        """Ask every site for a sign of life, and update who is gone."""
        engine = fl_ctx.get_engine()
        sites = sorted(client.name for client in engine.get_clients())
        answers = engine.send_aux_request(
            sites, ReservedTopic.JOB_HEART_BEAT, Shareable(), self.silence / _LOOKS, fl_ctx,
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
            f"no sign of life for {self.silence:.0f} s; a site that was started again takes part "
            "in a new job only: continue this one"
        )
        fl_ctx.set_prop(GONE, dict.fromkeys(gone, why), private=True, sticky=True)
        silent = f"no sign of life of {', '.join(sorted(gone))} for {self.silence:.0f} s"
        self.log_warning(fl_ctx, silent if gone else "all sites give signs of life again")
