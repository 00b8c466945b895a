"""The mean over the sites of what they measured, as curves of the server's own."""

from __future__ import annotations

import math

import numpy as np
from nvflare.apis.analytix import AnalyticsDataType
from nvflare.apis.event_type import EventType
from nvflare.apis.fl_constant import FLContextKey
from nvflare.apis.fl_context import FLContext
from nvflare.app_common.app_constant import AppConstants
from nvflare.app_common.app_event_type import AppEventType
from nvflare.app_common.widgets.streaming import AnalyticsSender

from surgical_aggregation.global_model import current_global_model
from surgical_aggregation.metrics_stream import measured
from surgical_aggregation.site_identity import site_of


class MeanMetrics(AnalyticsSender):
    """Log the means over the sites of their losses and AUROCs, round by round, at the server.

    Runs on the server, beside `Tracking`; nothing of it goes to a site. Tags and steps are those of
    `MetricsStream`, of sites whose results were accepted; a class's mean is over the sites that
    measure it. MLflow's receiver keeps the sites' own curves alone.

    Args:
        workflow: Id of the workflow that validates the final model. Default "validate_final".
    """

    def __init__(self, workflow: str = "validate_final"):
        super().__init__()
        self.workflow = workflow
        self._sites: dict[str, dict[str, float]] = {}

    def handle_event(self, event_type: str, fl_ctx: FLContext) -> None:
        """Collect what the sites measured, and log the means when all of it is in."""
        final = fl_ctx.get_prop(FLContextKey.WORKFLOW) == self.workflow
        if event_type == EventType.START_RUN:
            self.engine = fl_ctx.get_engine()
        elif event_type in (AppEventType.ROUND_STARTED, EventType.START_WORKFLOW):
            self._sites = {}
        elif event_type == AppEventType.AFTER_CONTRIBUTION_ACCEPT:
            if fl_ctx.get_prop(AppConstants.AGGREGATION_ACCEPTED):
                self._collect(AppConstants.TRAINING_RESULT, fl_ctx)
        elif event_type == AppEventType.VALIDATION_RESULT_RECEIVED:
            self._collect(AppConstants.VALIDATION_RESULT, fl_ctx)
        elif event_type == AppEventType.BEFORE_AGGREGATION:
            self._log_means(fl_ctx.get_prop(AppConstants.CURRENT_ROUND))
        elif event_type == EventType.END_WORKFLOW and final:
            self._log_means(current_global_model(fl_ctx).manifest["round"])

    def _collect(self, result: str, fl_ctx: FLContext) -> None:
        """Note the numbers in a site's result; whatever else it sends is left out."""
        self._sites[site_of(fl_ctx)] = {
            name: value
            for name, value in measured(fl_ctx.get_prop(result)).items()
            if isinstance(value, float) and math.isfinite(value)
        }

    def _log_means(self, step: int) -> None:
        by_name: dict[str, list[float]] = {}
        for _, values in sorted(self._sites.items()):
            for name, value in values.items():
                by_name.setdefault(name, []).append(value)
        if by_name:
            means = {name: float(np.mean(values)) for name, values in by_name.items()}
            self.add("mean", means, AnalyticsDataType.SCALARS, step)
