"""What a person wants to read in the server's log when a run has ended."""

from __future__ import annotations

from nvflare.apis.dxo import from_shareable
from nvflare.apis.event_type import EventType
from nvflare.apis.fl_component import FLComponent
from nvflare.apis.fl_constant import FLContextKey, ReturnCode
from nvflare.apis.fl_context import FLContext
from nvflare.app_common.app_constant import AppConstants
from nvflare.app_common.app_event_type import AppEventType

from surgical_aggregation.best_model import BEST, BEST_DROPPED
from surgical_aggregation.declaration import peer_name
from surgical_aggregation.federated_training import STOPPED, TRAINING_STOPPED
from surgical_aggregation.persistor import checkpoint_folders
from surgical_aggregation.refusal import CONTRIBUTION_REFUSED


class RunSummary(FLComponent):
    """Log at the end of a run which model is best, how it did at every site, and where it is.

    Runs on the server.

    Args:
        workflow: Id of the workflow that tests the best model. Default "test_best".
    """

    def __init__(self, workflow: str = "test_best"):
        super().__init__()
        self.workflow = workflow
        self._best: dict | None = None
        self._tests: dict[str, dict[str, float]] = {}
        self._stopped: dict | None = None
        self._refused = 0

    def handle_event(self, event_type: str, fl_ctx: FLContext) -> None:
        """Collect, and speak at END_RUN."""
        if event_type in (
            AppEventType.GLOBAL_BEST_MODEL_AVAILABLE,
            AppEventType.INITIAL_MODEL_LOADED,
        ):
            self._best = fl_ctx.get_prop(BEST)
        elif event_type == BEST_DROPPED:
            self._best = None
        elif event_type == TRAINING_STOPPED:
            self._stopped = fl_ctx.get_prop(STOPPED)
        elif event_type == CONTRIBUTION_REFUSED:
            self._refused += 1
        elif event_type == AppEventType.VALIDATION_RESULT_RECEIVED:
            result = fl_ctx.get_prop(AppConstants.VALIDATION_RESULT)
            if (
                fl_ctx.get_prop(FLContextKey.WORKFLOW) == self.workflow
                and result.get_return_code() == ReturnCode.OK
            ):
                self._tests[peer_name(fl_ctx)] = from_shareable(result).data
        elif event_type == EventType.END_RUN:
            self.log_info(fl_ctx, "\n".join(["the run has ended", *self._lines(fl_ctx)]))

    def _lines(self, fl_ctx: FLContext) -> list[str]:
        lines = ["  no model was measured at all sites, so there is no best one"]
        if self._best is not None:
            lines = [
                f"  best model: round {self._best['round']}, mean validation "
                f"{self._best['metric']} {self._best['value']:.4f}"
            ]
        if self._stopped is not None:
            lines.insert(
                0,
                f"  stopped early, after round {self._stopped['round']}: "
                f"patience {self._stopped['patience']}",
            )
        for site, metrics in sorted(self._tests.items()):
            classes = sum(name.startswith("auroc/") for name in metrics)
            auroc = f"{metrics['auroc']:.3f}" if "auroc" in metrics else "not defined"
            lines.append(
                f"  test split of {site}: mean AUROC {auroc} over {classes} of its classes"
            )
        if self._refused:
            lines.append(f"  results refused: {self._refused}; see run_record.jsonl")
        return [*lines, f"  models: {checkpoint_folders(fl_ctx)[1]}"]
