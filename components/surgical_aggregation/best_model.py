"""Which global model is the best: the one with the smallest mean validation loss over sites."""

from __future__ import annotations

import math

from nvflare.apis.dxo import MetaKey, from_shareable
from nvflare.apis.event_type import EventType
from nvflare.apis.fl_component import FLComponent
from nvflare.apis.fl_constant import FLContextKey, ReturnCode
from nvflare.apis.fl_context import FLContext
from nvflare.apis.shareable import Shareable
from nvflare.app_common.app_constant import AppConstants
from nvflare.app_common.app_event_type import AppEventType

from surgical_aggregation.declaration import declared_classes, peer_name
from surgical_aggregation.global_model import current_global_model

BEST = "surgical.best"
"""Context property beside GLOBAL_BEST_MODEL_AVAILABLE: {"round", "metric", "value", "sites"}."""


class BestModelSelector(FLComponent):
    """Announce the global model with the smallest mean over sites of a validation loss.

    Runs on the server. "The model of round r" is the one that round r starts from. Each site
    measures it before training and sends the loss with its result; the final model is measured by a
    validation workflow after the last round. So both the first and the last model are candidates;
    FLARE's IntimeModelSelector skips round 0, never sees the final model, and counts sites whose
    results are then refused.

    A model is a candidate only when it has a column for every class of every site that measured it
    (in a fresh run, the model of round 0 has none) and when no site is missing that measured
    an earlier candidate; else a loss over fewer classes or sites would win. When a further site
    comes in, the first model that it measures too is the best so far.

    Args:
        metric: Name of the loss in the sites' metrics. Default "bce".
        workflow: Id of the workflow that validates the final model. Default "validate_final".
    """

    def __init__(self, metric: str = "bce", workflow: str = "validate_final"):
        super().__init__()
        self.metric = metric
        self.workflow = workflow
        self._losses: dict[str, float] = {}
        self._incomplete: set[str] = set()
        self._sites: set[str] = set()
        self._best: float | None = None

    def handle_event(self, event_type: str, fl_ctx: FLContext) -> None:
        """Collect losses, and decide when all of a model's are in."""
        if event_type == AppEventType.ROUND_STARTED:
            self._clear()
        elif event_type == AppEventType.AFTER_CONTRIBUTION_ACCEPT:
            if fl_ctx.get_prop(AppConstants.AGGREGATION_ACCEPTED):
                result = fl_ctx.get_prop(AppConstants.TRAINING_RESULT)
                metrics = from_shareable(result).get_meta_prop(MetaKey.INITIAL_METRICS)
                self._measured(metrics, fl_ctx)
        elif event_type == AppEventType.BEFORE_AGGREGATION:
            self._decide(fl_ctx.get_prop(AppConstants.CURRENT_ROUND), fl_ctx)
        elif event_type == EventType.START_WORKFLOW and self._is_final(fl_ctx):
            self._clear()
        elif event_type == AppEventType.VALIDATION_RESULT_RECEIVED and self._is_final(fl_ctx):
            self._measured(_metrics(fl_ctx.get_prop(AppConstants.VALIDATION_RESULT)), fl_ctx)
        elif event_type == EventType.END_WORKFLOW and self._is_final(fl_ctx):
            self._decide(fl_ctx.get_prop(AppConstants.CURRENT_ROUND) + 1, fl_ctx)

    def _is_final(self, fl_ctx: FLContext) -> bool:
        return fl_ctx.get_prop(FLContextKey.WORKFLOW) == self.workflow

    def _clear(self) -> None:
        self._losses = {}
        self._incomplete = set()

    def _measured(self, metrics: object, fl_ctx: FLContext) -> None:
        site = peer_name(fl_ctx)
        loss = metrics.get(self.metric) if isinstance(metrics, dict) else None
        if not isinstance(loss, float) or not 0 <= loss < math.inf:
            self.log_warning(fl_ctx, f"{site} sent no usable {self.metric!r}; got {loss!r}")
            return
        self._losses[site] = loss
        if not set(declared_classes(fl_ctx)) <= set(current_global_model(fl_ctx).columns):
            self._incomplete.add(site)

    def _decide(self, round_: int, fl_ctx: FLContext) -> None:
        if self._incomplete or not self._losses or self._sites - self._losses.keys():
            why = (
                f"it has no columns yet for all classes of {sorted(self._incomplete)}"
                if self._incomplete
                else f"not measured by {sorted(self._sites - self._losses.keys()) or 'any site'}"
            )
            self.log_info(fl_ctx, f"the model of round {round_} cannot be the best: {why}")
            return
        if self._losses.keys() - self._sites:  # measured by more sites: not to be compared
            self._best = None
        self._sites |= self._losses.keys()
        loss = sum(self._losses[site] for site in sorted(self._losses)) / len(self._losses)
        if self._best is not None and loss >= self._best:
            return
        self._best = loss
        best = {
            "round": round_,
            "metric": self.metric,
            "value": loss,
            "sites": dict(sorted(self._losses.items())),
        }
        self.log_info(fl_ctx, f"the model of round {round_} is the best: {self.metric} {loss:.4f}")
        fl_ctx.set_prop(BEST, best, private=True, sticky=False)
        fl_ctx.set_prop(AppConstants.VALIDATION_RESULT, loss, private=True, sticky=False)
        selection = {
            "source": type(self).__name__,
            "key_metric": {"name": self.metric, "mode": "min"},
            "best_round": round_,
            "best_metrics": {self.metric: loss},
        }
        fl_ctx.set_prop(AppConstants.METRICS_SELECTION_INFO, selection, private=True, sticky=False)
        self.fire_event(AppEventType.GLOBAL_BEST_MODEL_AVAILABLE, fl_ctx)


def _metrics(result: Shareable) -> object:
    if result.get_return_code() != ReturnCode.OK:
        return None
    return from_shareable(result).data
