"""What a site measures, streamed to the server round by round with FLARE's analytics."""

from __future__ import annotations

import re
from typing import Any

from nvflare.apis.analytix import AnalyticsDataType
from nvflare.apis.dxo import DataKind, MetaKey, from_shareable
from nvflare.apis.event_type import EventType
from nvflare.apis.fl_constant import FLContextKey, ReturnCode
from nvflare.apis.fl_context import FLContext
from nvflare.apis.shareable import Shareable
from nvflare.app_common.app_constant import AppConstants
from nvflare.app_common.widgets.streaming import AnalyticsSender

from surgical_aggregation.global_model import MODEL_ROUND
from surgical_aggregation.trackers import NONE

STREAMED = ("bce", "auroc", "train_loss")
"""What a metric's name begins with, up to a slash, if it is streamed."""

_STEP = "surgical.step"


class MetricsStream(AnalyticsSender):
    """Stream the losses and AUROCs of a site's results, in an "analytix_log_stats" of FLARE's each.

    Runs on the client. It reads a result when every filter of site and job is through with it, so
    nothing is streamed that the result itself does not tell the server. FLARE's
    `ConvertToFedEvent`, beside it, sends the events to the server, and to nobody else. Tags:

        bce, auroc                    step r: the model that round r starts from, on the validation
        bce/<class>, auroc/<class>    split; the final model included
        train_loss                    step r: of round r
        test/bce, test/auroc/<class>  the tested model, on the test split; step: its round

    Args:
        tracking: The server's (see `Tracking`), or "none": nothing is streamed. Default
            "tensorboard".
    """

    def __init__(self, tracking: str = "tensorboard"):
        super().__init__()
        self.tracking = tracking

    def handle_event(self, event_type: str, fl_ctx: FLContext) -> None:
        """Note the step when a task begins, and stream when its result is about to leave."""
        super().handle_event(event_type, fl_ctx)
        if self.tracking == NONE:
            return
        if event_type == EventType.BEFORE_TASK_EXECUTION:
            task: Shareable = fl_ctx.get_prop(FLContextKey.TASK_DATA)
            step = task.get_header(MODEL_ROUND, task.get_header(AppConstants.CURRENT_ROUND))
            fl_ctx.set_prop(_STEP, step, private=True, sticky=False)
        elif event_type == EventType.AFTER_TASK_RESULT_FILTER:
            task_name, step = fl_ctx.get_prop(FLContextKey.TASK_NAME), fl_ctx.get_prop(_STEP)
            prefix = "test/" if task_name == "test" else ""
            values = {
                self._tag(f"{prefix}{name}"): value
                for name, value in measured(fl_ctx.get_prop(FLContextKey.TASK_RESULT)).items()
            }
            if values:
                self.add(task_name, values, AnalyticsDataType.SCALARS, step)

    def _tag(self, name: str) -> str:
        """A name as the tracker takes it: MLflow refuses all values with one that has others."""
        return re.sub(r"[^\w\-. :/]", "_", name) if self.tracking == "mlflow" else name


def measured(result: Shareable) -> dict[str, Any]:
    """What is streamed of a result's metrics, by name; nothing of a failure.

    Args:
        result: Of a training task, or of an evaluation.
    """
    if result.get_return_code() != ReturnCode.OK:
        return {}
    dxo = from_shareable(result)
    evaluated = dxo.data_kind == DataKind.METRICS
    values = dxo.data if evaluated else dxo.get_meta_prop(MetaKey.INITIAL_METRICS, {})
    return {name: value for name, value in values.items() if name.partition("/")[0] in STREAMED}
