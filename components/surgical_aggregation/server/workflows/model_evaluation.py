"""The evaluation workflow: FLARE's GlobalModelEval, by the rules of the rounds."""

from __future__ import annotations

from nvflare.apis.client import Client
from nvflare.apis.controller_spec import ClientTask, Task
from nvflare.apis.dxo import DXO, DataKind, from_shareable
from nvflare.apis.fl_context import FLContext
from nvflare.apis.shareable import Shareable
from nvflare.app_common.app_constant import AppConstants
from nvflare.app_common.workflows.global_model_eval import GlobalModelEval
from nvflare.fuel.utils.validation_utils import check_non_negative_int

from surgical_aggregation.aggregation import feature_statistics, metrics
from surgical_aggregation.server.access.declared_classes import permitted_classes
from surgical_aggregation.server.workflows.collecting_controller import CollectingController
from surgical_aggregation.wire.headers import FEATURES, MODEL_FEATURES, MODEL_HAS_HEAD


class ModelEvaluation(CollectingController, GlobalModelEval):
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

    def __init__(
        self,
        model_locator_id: str = "model",
        min_clients: int = 0,
        wait_seconds: int = 600,
        validation_task_name: str = "test",
    ):
        super().__init__(
            model_locator_id=model_locator_id,
            validation_timeout=0,
            validation_task_name=validation_task_name,
            cross_val_dir=validation_task_name,
            cleanup_models=True,
        )
        check_non_negative_int("min_clients", min_clients)
        check_non_negative_int("wait_seconds", wait_seconds)
        self.model_locator_id = model_locator_id
        self.min_clients = min_clients
        self.wait_seconds = wait_seconds
        self.validation_task_name = validation_task_name

    def broadcast(
        self,
        task: Task,
        fl_ctx: FLContext,
        targets: list[Client] | list[str] | None = None,
        min_responses: int = 1,
        wait_time_after_min_received: int = 0,
    ) -> None:
        """Have the model measured; FLARE's workflow would wait for all targets."""
        self.broadcast_and_wait(
            task, fl_ctx, targets, self.min_clients, self.wait_seconds,
            fl_ctx.get_run_abort_signal(),
        )  # fmt: skip

    def fault(self, result: Shareable, fl_ctx: FLContext) -> str | None:
        """What is wrong with what a site has measured."""
        dxo = from_shareable(result)
        if dxo.data_kind != DataKind.METRICS:
            return f"it must carry metrics; got {str(dxo.data_kind)!r}"
        said, features = dxo.get_meta_prop(FEATURES), fl_ctx.get_prop(MODEL_FEATURES)
        if said is not None and (why := feature_statistics.fault(said, features)):
            return why
        unknown = () if fl_ctx.get_prop(MODEL_HAS_HEAD) else None
        return metrics.fault(dxo.data, permitted_classes(fl_ctx, None) or unknown)

    def prepare(self, client_task: ClientTask, fl_ctx: FLContext) -> None:
        """Say which model the result is of, and make its metrics plain numbers."""
        result = client_task.result
        result.add_cookie(
            AppConstants.MODEL_OWNER, client_task.task.props[AppConstants.MODEL_OWNER]
        )
        dxo = from_shareable(result)
        meta = {k: v for k, v in dxo.meta.items() if k == FEATURES}
        DXO(DataKind.METRICS, data=metrics.numbers(dxo.data), meta=meta).update_shareable(result)
