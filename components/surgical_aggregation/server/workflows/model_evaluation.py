"""The evaluation workflow: FLARE's GlobalModelEval, counting accepted results only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nvflare.apis.controller_spec import ClientTask, Task
from nvflare.apis.dxo import DXO, DataKind
from nvflare.apis.fl_context import FLContext
from nvflare.apis.shareable import Shareable
from nvflare.app_common.app_constant import AppConstants
from nvflare.app_common.workflows.global_model_eval import GlobalModelEval

from surgical_aggregation.aggregation import feature_statistics, metrics
from surgical_aggregation.aggregation.site_result import SiteResult
from surgical_aggregation.server.access.job_sites import permitted_classes
from surgical_aggregation.server.workflows.collecting_controller import AskingController
from surgical_aggregation.wire import headers, results


@dataclass(eq=False)
class ModelEvaluation(AskingController, GlobalModelEval):
    """GlobalModelEval that counts accepted results only, see `CollectingController`.

    Runs on the server. A result is refused if its metrics or feature statistics are invalid (see
    `metrics.fault` and `feature_statistics.fault`). FLARE's own workflow completes whatever the
    sites reply, and waits 6,000 s for each silent one.

    Args:
        model_locator_id: Id of the model locator. Default "model".
        min_clients: Number of sites that must evaluate the model. Default 0: all of the job.
        wait_seconds: Grace period in seconds for the other sites. Default 600.
        validation_task_name: Name of the task, and of FLARE's folder of results. Default "test".
    """

    model_locator_id: str = "model"
    min_clients: int = 0
    wait_seconds: int = 600
    validation_task_name: str = "test"

    def __post_init__(self) -> None:
        super().__post_init__(
            model_locator_id=self.model_locator_id,
            validation_timeout=0,
            validation_task_name=self.validation_task_name,
            cross_val_dir=self.validation_task_name,
            cleanup_models=True,
        )

    def broadcast(
        self, task: Task, fl_ctx: FLContext, targets: Any = None, *args: Any, **options: Any
    ) -> None:
        """Evaluate the model as `ask` does; FLARE's workflow would wait for all targets."""
        self.ask(task, fl_ctx, targets)

    def read(self, shareable: Shareable) -> SiteResult:
        """Read an evaluation result."""
        return results.measured(shareable)

    def fault(self, result: SiteResult, fl_ctx: FLContext) -> str | None:
        """Why the metrics or feature statistics must be refused; None: they are valid."""
        model = fl_ctx.get_prop(headers.MEASURED, {})
        if result.features is not None:
            if why := feature_statistics.fault(result.features, model.get("features")):
                return why
        unknown = () if model.get("has_head") else None
        return metrics.fault(result.metrics, permitted_classes(fl_ctx, None) or unknown)

    def prepare(self, client_task: ClientTask, result: SiteResult, fl_ctx: FLContext) -> None:
        """Set the model's owner, and the metrics as plain numbers."""
        shareable, owner = client_task.result, client_task.task.props[AppConstants.MODEL_OWNER]
        shareable.add_cookie(AppConstants.MODEL_OWNER, owner)
        DXO(DataKind.METRICS, data=dict(result.metrics)).update_shareable(shareable)
