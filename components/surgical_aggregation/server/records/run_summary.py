"""What the server's log says of a run when it has ended."""

from __future__ import annotations

from collections.abc import Mapping

from nvflare.apis.dxo import from_shareable
from nvflare.apis.event_type import EventType
from nvflare.apis.fl_component import FLComponent
from nvflare.apis.fl_constant import FLContextKey
from nvflare.apis.fl_context import FLContext
from nvflare.app_common.app_constant import AppConstants
from nvflare.app_common.app_event_type import AppEventType

from surgical_aggregation.aggregation.metrics import IMAGES
from surgical_aggregation.server.access.site_identity import site_of
from surgical_aggregation.server.models.model_files import checkpoint_folders
from surgical_aggregation.wire import headers


class RunSummary(FLComponent):
    """Log at the end of a run which model is best, its test results at every site, and where it is.

    Runs on the server. A run without training logs the test results alone.

    Args:
        workflow: Id of the workflow that tests the model. Default "test_best".
    """

    def __init__(self, workflow: str = "test_best"):
        super().__init__()
        self.workflow = workflow
        self._best: dict | None = None
        self._trained = False
        self._tests: dict[str, str] = {}
        self._stopped: dict | None = None
        self._refused = 0
        self._dropped = 0

    def handle_event(self, event_type: str, fl_ctx: FLContext) -> None:
        """Collect, and log at END_RUN."""
        tested = fl_ctx.get_prop(FLContextKey.WORKFLOW) == self.workflow
        best_events = (AppEventType.GLOBAL_BEST_MODEL_AVAILABLE, AppEventType.INITIAL_MODEL_LOADED)
        if event_type in best_events:
            self._best = fl_ctx.get_prop(headers.BEST)
        elif event_type == AppEventType.ROUND_STARTED:
            self._trained = True
        elif event_type == headers.BEST_DROPPED:
            self._best = None
        elif event_type == headers.TRAINING_STOPPED:
            self._stopped = fl_ctx.get_prop(headers.STOPPED)
        elif event_type in (headers.CONTRIBUTION_REFUSED, headers.SITE_SILENT):
            refusal = fl_ctx.get_prop(headers.REFUSAL)
            self._refused += event_type == headers.CONTRIBUTION_REFUSED
            if tested:
                self._tests.setdefault(refusal["site"], f"not measured: {refusal['reason']}")
        elif event_type == headers.ROUND_DROPPED:
            self._dropped += 1
        elif event_type == AppEventType.VALIDATION_RESULT_RECEIVED and tested:
            result = fl_ctx.get_prop(AppConstants.VALIDATION_RESULT)
            self._tests[site_of(fl_ctx)] = _measured(from_shareable(result).data)
        elif event_type == EventType.END_RUN:
            self.log_info(fl_ctx, "\n".join(["the run has ended", *self._lines(fl_ctx)]))

    def _lines(self, fl_ctx: FLContext) -> list[str]:
        tests = [f"  test split of {site}: {said}" for site, said in sorted(self._tests.items())]
        if not self._trained:
            return tests
        lines = []
        if stopped := self._stopped:
            lines.append(
                f"  stopped early, after round {stopped['round']}: patience {stopped['patience']}"
            )
        if best := self._best:
            lines.append(
                f"  best model: round {best['round']}{_made(best)}, mean validation "
                f"{best['metric']} {best['value']:.4f} over {len(best['sites'])} sites"
            )
        else:
            lines.append("  there is no best model; the lines above say of every round why")
        lines += tests
        if self._refused:
            lines.append(f"  results refused: {self._refused}; see run_record.jsonl")
        if self._dropped:
            lines.append(f"  rounds dropped: {self._dropped}; see run_record.jsonl")
        return [*lines, f"  models: {checkpoint_folders(fl_ctx)[1]}"]


def _made(best: Mapping[str, object]) -> str:
    made = best.get(headers.CANDIDATE)
    return f" ({made})" if made else ""


def _measured(metrics: Mapping[str, float]) -> str:
    """A site's mean AUROC, and for how many of its classes it is defined."""
    defined, measured = (
        sum(name.startswith(f"{metric}/") for name in metrics) for metric in ("auroc", "bce")
    )
    auroc = f"{metrics['auroc']:.3f}" if "auroc" in metrics else "not defined"
    images = f", {metrics[IMAGES]:.0f} images" if IMAGES in metrics else ""
    return f"mean AUROC {auroc} over {defined} of its {measured} classes{images}"
