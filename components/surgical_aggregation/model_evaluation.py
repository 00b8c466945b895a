"""The evaluation workflow: FLARE's GlobalModelEval, which fails when nobody could measure."""

from __future__ import annotations

from nvflare.apis.fl_constant import ReturnCode
from nvflare.apis.fl_context import FLContext
from nvflare.apis.signal import Signal
from nvflare.app_common.app_constant import AppConstants
from nvflare.app_common.app_event_type import AppEventType
from nvflare.app_common.workflows.global_model_eval import GlobalModelEval

from surgical_aggregation.declaration import peer_name


class ModelEvaluation(GlobalModelEval):
    """GlobalModelEval that ends the run with the reason when too few sites measured the model.

    Runs on the server. FLARE's own ends well whatever the sites answer.

    Args:
        model_locator_id: Id of the model locator. Default "model".
        min_clients: Sites that must measure the model. Default 1.
        validation_timeout: Seconds that a site may take. Default 6000.
        validation_task_name: Name of the task. Default "test".
    """

    def __init__(
        self,
        model_locator_id: str = "model",
        min_clients: int = 1,
        validation_timeout: int = 6000,
        validation_task_name: str = "test",
    ):
        super().__init__(
            model_locator_id=model_locator_id,
            validation_timeout=validation_timeout,
            validation_task_name=validation_task_name,
            cross_val_dir="evaluation",
            cleanup_models=True,
        )
        self.model_locator_id = model_locator_id
        self.min_clients = min_clients
        self.validation_timeout = validation_timeout
        self.validation_task_name = validation_task_name
        self._measured: set[str] = set()

    def handle_event(self, event_type: str, fl_ctx: FLContext) -> None:
        """Note who has measured the model."""
        super().handle_event(event_type, fl_ctx)
        if event_type == AppEventType.VALIDATION_RESULT_RECEIVED:
            result = fl_ctx.get_prop(AppConstants.VALIDATION_RESULT)
            if result.get_return_code() == ReturnCode.OK:
                self._measured.add(peer_name(fl_ctx))

    def control_flow(self, abort_signal: Signal, fl_ctx: FLContext) -> None:
        """Have the model measured; see that it was."""
        super().control_flow(abort_signal, fl_ctx)
        if not abort_signal.triggered and len(self._measured) < self.min_clients:
            measured = ", ".join(sorted(self._measured)) or "none"
            self.system_panic(
                f"the model must be measured at {self.min_clients} sites; it was at {measured}. "
                "The others' own logs say why they could not.",
                fl_ctx,
            )
