"""How often waiting sites ask the server for a task."""

from __future__ import annotations

from nvflare.apis.event_type import EventType
from nvflare.apis.fl_component import FLComponent
from nvflare.apis.fl_context import FLContext

from surgical_aggregation.wire import flare_internals


class Polling(FLComponent):
    """Have waiting sites ask less often, the more they are.

    Runs on the server. FLARE sends no task by itself: a site asks, and where there is none, again
    after the job's `task_request_interval`. That is the shortest time here. Where the sites of the
    job would ask more often than `requests_per_second` together, it becomes sites /
    `requests_per_second` seconds.

    Args:
        requests_per_second: That waiting sites make together. A request takes 1 to 2 ms of one
            of the server's cores. Default 100.

    Example:
        At 100 requests a second and a `task_request_interval` of 0.1 s, 4 sites ask every 0.1 s,
        and 50 sites every 0.5 s.
    """

    def __init__(self, requests_per_second: float = 100):
        super().__init__()
        self.requests_per_second = requests_per_second

    def handle_event(self, event_type: str, fl_ctx: FLContext) -> None:
        """Set the interval when the run starts, whose sites are known then."""
        if event_type != EventType.START_RUN:
            return
        if self.requests_per_second <= 0:
            self.system_panic(
                f"requests_per_second must be above 0; got {self.requests_per_second!r}.", fl_ctx
            )
            return
        sites = len(fl_ctx.get_engine().get_clients())
        flare_internals.ask_no_sooner(sites / self.requests_per_second, fl_ctx)
