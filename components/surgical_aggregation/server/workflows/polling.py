"""Limit how often waiting sites request a task."""

from __future__ import annotations

from nvflare.apis.event_type import EventType
from nvflare.apis.fl_component import FLComponent
from nvflare.apis.fl_context import FLContext

from surgical_aggregation.wire import flare_internals


class Polling(FLComponent):
    """Limit the rate of task requests of all waiting sites together.

    Runs on the server. In FLARE, sites request tasks; one that gets none requests again after the
    job's `task_request_interval`. This component lengthens the interval to sites /
    `requests_per_second` seconds, if that is longer.

    Args:
        requests_per_second: Largest rate, above 0. A request takes 1 to 2 ms of one of the
            server's cores. Default 100.

    Example:
        With 100 requests per second and a `task_request_interval` of 0.1 s, 4 sites request every
        0.1 s, and 50 sites every 0.5 s.
    """

    def __init__(self, requests_per_second: float = 100):
        super().__init__()
        self.requests_per_second = requests_per_second

    def handle_event(self, event_type: str, fl_ctx: FLContext) -> None:
        """Set the interval when the run starts; its sites are known then."""
        if event_type != EventType.START_RUN:
            return
        if self.requests_per_second <= 0:
            self.system_panic(
                f"requests_per_second must be above 0; got {self.requests_per_second!r}.", fl_ctx
            )
            return
        sites = len(fl_ctx.get_engine().get_clients())
        flare_internals.raise_request_interval(sites / self.requests_per_second, fl_ctx)
