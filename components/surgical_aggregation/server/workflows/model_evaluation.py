"""The evaluation workflow: FLARE's GlobalModelEval, by the rules of the rounds."""

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
    """GlobalModelEval with the rules of `CollectingController`.

    Runs on the server. Metrics and statistics of features are checked first, see `metrics.fault`
    and `feature_statistics.fault`. FLARE's own ends well whatever the sites answer, and waits
    6,000 s for each that does not.

    Args:
        model_locator_id: Id of the model locator. Default "model".
        min_clients: Sites that must measure the model. Default 0: all of the job.
        wait_seconds: Seconds to wait for the others then. Default 600.
        validation_task_name: Name of the task, and of the folder that FLARE keeps the results in.
            Default "test".
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
        """Have the model measured; FLARE's workflow would wait for all targets."""
        self.ask(task, fl_ctx, targets)

    def read(self, shareable: Shareable) -> SiteResult:
        """What a site has measured."""
        return results.measured(shareable)

    def fault(self, result: SiteResult, fl_ctx: FLContext) -> str | None:
        """What is wrong with what a site has measured."""
        model = fl_ctx.get_prop(headers.MEASURED, {})
        if result.features is not None:
            if why := feature_statistics.fault(result.features, model.get("features")):
                return why
        unknown = () if model.get("has_head") else None
        return metrics.fault(result.metrics, permitted_classes(fl_ctx, None) or unknown)

    def prepare(self, client_task: ClientTask, result: SiteResult, fl_ctx: FLContext) -> None:
        """Say which model the result is of, and make its metrics plain numbers."""
        shareable, owner = client_task.result, client_task.task.props[AppConstants.MODEL_OWNER]
        shareable.add_cookie(AppConstants.MODEL_OWNER, owner)
        DXO(DataKind.METRICS, data=dict(result.metrics)).update_shareable(shareable)
