"""Where the metrics that the sites stream are kept: TensorBoard's or MLflow's files."""

from __future__ import annotations

import os
from importlib import import_module

from nvflare.apis.event_type import EventType
from nvflare.apis.fl_component import FLComponent
from nvflare.apis.fl_context import FLContext
from nvflare.app_common.widgets.streaming import AnalyticsReceiver

from surgical_aggregation.trackers import NONE, TRACKERS, TrackingError, check, check_installed


class Tracking(FLComponent):
    """Keep what the sites' `MetricsStream` sends, with FLARE's own receivers.

    Runs on the server. A run whose metrics cannot be kept ends with the reason before any site
    trains.

    Args:
        tracking: "tensorboard" (default): `TensorBoardReceiver`, event files in tb_events/<site>
            of the job's workspace. "mlflow": MLflowReceiver, a run for every site, at
            MLFLOW_TRACKING_URI where the server has that variable, else in mlflow.db of the job's
            results. "none": nothing is kept.
    """

    def __init__(self, tracking: str = "tensorboard"):
        super().__init__()
        self.tracking = tracking
        self._receiver: AnalyticsReceiver | None = None

    def handle_event(self, event_type: str, fl_ctx: FLContext) -> None:
        """Make the receiver when the run starts; pass every event on to it."""
        if event_type == EventType.START_RUN:
            try:
                check(self.tracking)
                check_installed(self.tracking)
            except TrackingError as error:
                self.system_panic(str(error), fl_ctx)
                return
            self._receiver = _RECEIVERS[self.tracking]()
        if self._receiver is None:
            return
        self._receiver.handle_event(event_type, fl_ctx)
        # A receiver that cannot start logs why, and would drop whatever comes.
        if event_type == EventType.START_RUN and not self._receiver._initialized:
            self.system_panic(
                f"tracking = {self.tracking!r} cannot start; the server's log says why, above. "
                f"Mend that, or set tracking to another of {', '.join((*TRACKERS, NONE))}.",
                fl_ctx,
            )


def _tensorboard() -> AnalyticsReceiver:
    return import_module("surgical_aggregation.tensorboard_receiver").TensorBoardReceiver()


def _mlflow() -> AnalyticsReceiver:
    receiver = import_module("nvflare.app_opt.tracking.mlflow.mlflow_receiver").MLflowReceiver
    names = {"experiment_name": "surgical-aggregation", "experiment_tags": {}, "run_tags": {}}
    return receiver(tracking_uri=os.environ.get("MLFLOW_TRACKING_URI"), kw_args=names)


_RECEIVERS = {"tensorboard": _tensorboard, "mlflow": _mlflow, NONE: lambda: None}
