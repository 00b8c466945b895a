"""Which global model is the best: the one with the smallest mean validation loss over sites."""

from __future__ import annotations

import math
from typing import Any

from nvflare.apis.dxo import MetaKey, from_shareable
from nvflare.apis.event_type import EventType
from nvflare.apis.fl_component import FLComponent
from nvflare.apis.fl_constant import FLContextKey, ReturnCode
from nvflare.apis.fl_context import FLContext
from nvflare.apis.shareable import Shareable
from nvflare.app_common.app_constant import AppConstants
from nvflare.app_common.app_event_type import AppEventType

from surgical_aggregation.declaration import declared_classes, peer_name
from surgical_aggregation.global_model import BEST_ROUND, current_global_model
from surgical_aggregation.one_line import one_line

BEST = "surgical.best"
"""Context property beside GLOBAL_BEST_MODEL_AVAILABLE, the best model's record: {"round", "metric",
"value", "sites": site -> loss, "classes": site -> the classes that it declared}.

Beside INITIAL_MODEL_LOADED: the record that a continued run takes over."""

BEST_DROPPED = "surgical.best_dropped"
"""Event: the best model of the run that is continued is none of this run's; why is `DROPPED`."""

DROPPED = "surgical.dropped"


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

    A site whose results were all refused has no say about the final model.

    In a continued run the earlier run's best model is the one to beat, unless other sites measure
    now, or a site has other classes: then its loss cannot be compared, and it is dropped.

    Args:
        metric: Name of the loss in the sites' metrics. Default "bce".
        workflow: Id of the workflow that validates the final model. Default "validate_final".
    """

    def __init__(self, metric: str = "bce", workflow: str = "validate_final"):
        super().__init__()
        self.metric = metric
        self.workflow = workflow
        self._losses: dict[str, float] = {}
        self._classes: dict[str, list[str]] = {}
        self._incomplete: set[str] = set()
        self._taught: set[str] = set()
        self._best: dict[str, Any] | None = None
        self._taken_over = False

    def handle_event(self, event_type: str, fl_ctx: FLContext) -> None:
        """Collect losses, and decide when all of a model's are in."""
        if event_type == AppEventType.INITIAL_MODEL_LOADED:
            self._set_best(fl_ctx.get_prop(BEST), fl_ctx)
            self._taken_over = self._best is not None
        elif event_type == AppEventType.ROUND_STARTED:
            self._clear()
        elif event_type == AppEventType.AFTER_CONTRIBUTION_ACCEPT:
            if fl_ctx.get_prop(AppConstants.AGGREGATION_ACCEPTED):
                result = fl_ctx.get_prop(AppConstants.TRAINING_RESULT)
                metrics = from_shareable(result).get_meta_prop(MetaKey.INITIAL_METRICS)
                self._taught.add(peer_name(fl_ctx))
                self._measured(metrics, fl_ctx)
        elif event_type == AppEventType.BEFORE_AGGREGATION:
            self._decide(fl_ctx.get_prop(AppConstants.CURRENT_ROUND), fl_ctx)
        elif event_type == EventType.START_WORKFLOW and self._is_final(fl_ctx):
            self._clear()
        elif event_type == AppEventType.VALIDATION_RESULT_RECEIVED and self._is_final(fl_ctx):
            if self._has_a_say(peer_name(fl_ctx), fl_ctx):
                self._measured(_metrics(fl_ctx.get_prop(AppConstants.VALIDATION_RESULT)), fl_ctx)
        elif event_type == EventType.END_WORKFLOW and self._is_final(fl_ctx):
            self._decide(current_global_model(fl_ctx).manifest["round"], fl_ctx)

    def _is_final(self, fl_ctx: FLContext) -> bool:
        return fl_ctx.get_prop(FLContextKey.WORKFLOW) == self.workflow

    def _has_a_say(self, site: str, fl_ctx: FLContext) -> bool:
        """Whether a site taught in this run, or measured the best model so far.

        Where there is no best one yet, also a site that taught in the run that is continued.
        """
        if site in self._taught:
            return True
        if self._best is None:
            classes = current_global_model(fl_ctx).manifest.get("classes", {})
            before = {name for facts in classes.values() for name in facts["sites"]}
        else:
            before = set(self._best["sites"])
        if site in before:
            return True
        self.log_warning(
            fl_ctx, f"what {site} measured does not count: no result of its was ever accepted"
        )
        return False

    def _clear(self) -> None:
        self._losses = {}
        self._classes = {}
        self._incomplete = set()

    def _set_best(self, best: dict[str, Any] | None, fl_ctx: FLContext) -> None:
        self._best = best
        round_ = None if best is None else best["round"]
        fl_ctx.set_prop(BEST_ROUND, round_, private=True, sticky=True)

    def _measured(self, metrics: object, fl_ctx: FLContext) -> None:
        site = peer_name(fl_ctx)
        loss = metrics.get(self.metric) if isinstance(metrics, dict) else None
        if not isinstance(loss, float) or not 0 <= loss < math.inf:
            got = one_line(repr(loss))
            self.log_warning(fl_ctx, f"{site} sent no usable {self.metric!r}; got {got}")
            return
        self._losses[site] = loss
        self._classes[site] = sorted(declared_classes(fl_ctx))
        if not set(self._classes[site]) <= set(current_global_model(fl_ctx).columns):
            self._incomplete.add(site)

    def _decide(self, round_: int, fl_ctx: FLContext) -> None:
        if self._taken_over and (why := self._incomparable(fl_ctx)):
            self._drop(why, fl_ctx)
        before = set(self._best["sites"]) if self._best else set()
        if self._incomplete or not self._losses or before - self._losses.keys():
            why = (
                f"it has no columns yet for all classes of {sorted(self._incomplete)}"
                if self._incomplete
                else f"not measured by {sorted(before - self._losses.keys()) or 'any site'}"
            )
            self.log_info(fl_ctx, f"the model of round {round_} cannot be the best: {why}")
            return
        loss = sum(self._losses[site] for site in sorted(self._losses)) / len(self._losses)
        measured_by_more = bool(self._losses.keys() - before)  # not to be compared
        if self._best is None or measured_by_more or loss < self._best["value"]:
            self._announce(round_, loss, fl_ctx)

    def _incomparable(self, fl_ctx: FLContext) -> str | None:
        """Why the earlier run's best loss is not one of this run's; None when it is."""
        best = self._best or {}
        if best["metric"] != self.metric:
            return f"its loss is {best['metric']!r}, and this run's is {self.metric!r}"
        sites = {client.name for client in fl_ctx.get_engine().get_clients()}
        if gone := sorted(best["sites"].keys() - sites):
            return f"{gone} measured it, and are not in this run"
        if new := sorted(self._losses.keys() - best["sites"].keys()):
            return f"{new} did not measure it"
        for site, classes in sorted(self._classes.items()):
            if classes != best["classes"][site]:
                return f"{site} has other classes now"
        return None

    def _drop(self, why: str, fl_ctx: FLContext) -> None:
        best = self._best or {}
        self.log_warning(
            fl_ctx, f"the best model so far, of round {best['round']}, is dropped: {why}"
        )
        self._taken_over = False
        self._set_best(None, fl_ctx)
        fl_ctx.set_prop(DROPPED, why, private=True, sticky=False)
        self.fire_event(BEST_DROPPED, fl_ctx)

    def _announce(self, round_: int, loss: float, fl_ctx: FLContext) -> None:
        best = {
            "round": round_,
            "metric": self.metric,
            "value": loss,
            "sites": dict(sorted(self._losses.items())),
            "classes": dict(sorted(self._classes.items())),
        }
        self._taken_over = False
        self._set_best(best, fl_ctx)
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
