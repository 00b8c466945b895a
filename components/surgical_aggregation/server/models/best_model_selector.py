"""Which global model is the best: the one with the smallest mean validation loss over sites."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from nvflare.apis.dxo import MetaKey, from_shareable
from nvflare.apis.event_type import EventType
from nvflare.apis.fl_component import FLComponent
from nvflare.apis.fl_constant import FLContextKey
from nvflare.apis.fl_context import FLContext
from nvflare.app_common.app_constant import AppConstants
from nvflare.app_common.app_event_type import AppEventType

from surgical_aggregation.aggregation.metrics import of_classes
from surgical_aggregation.aggregation.model_comparison import Measured, ModelComparison
from surgical_aggregation.aggregation.strategy import has_personal
from surgical_aggregation.server.access.declared_classes import declared_classes
from surgical_aggregation.server.access.site_identity import site_of
from surgical_aggregation.server.models.global_model import GlobalModel, current_global_model
from surgical_aggregation.wire.headers import (
    AVERAGE,
    BEST,
    BEST_DROPPED,
    BEST_OF_ROUNDS,
    BEST_ROUND,
    CANDIDATE,
    DROPPED,
    GONE,
    MODEL_VALIDATED,
    REFIT,
)
from surgical_aggregation.wire.untrusted_text import one_line


class BestModelSelector(FLComponent):
    """Announce the global model with the smallest mean over sites of a validation loss.

    Runs on the server. "The model of round r" is the one that round r starts from. Each site
    measures it before training and sends the loss with its result; validation workflows measure the
    final model after the last round, and the `candidates` that were made from those of the rounds.
    So the first and the last model can be the best, too.

    The manifest of a model that was measured has its AUROC by site and class.

    Sites may be absent; see `ModelComparison`. A site whose results were all refused does not vote
    on the final model.

    Early stopping counts from the best of the rounds' models, so that candidates, which every job
    makes at its end, do not change it: the manifest has its record (`best_of_rounds`), and counts
    the rounds since whose models could not be compared with it (`not_compared`).

    In a continued run the earlier run's best model is the one to beat, over the sites that are in
    this run. It is dropped when it could not be this run's best model, or its loss is another.

    Args:
        metric: Name of the loss in the sites' metrics. Default "bce".
        workflows: Ids of the workflows that validate the final model and the candidates. Default:
            those of the jobs.
        min_share: Share of the run's sites that must have measured a model, and both of two that
            are compared; above 0, at most 1. Default 0.5.
    """

    def __init__(
        self,
        metric: str = "bce",
        workflows: Sequence[str] = ("validate_final", "validate_average", "validate_refit"),
        min_share: float = 0.5,
    ):
        super().__init__()
        self.metric = metric
        self.workflows = workflows
        self.min_share = min_share
        self._selection = ModelComparison(min_share)
        self._rounds = ModelComparison(min_share)
        self._losses: dict[str, float] = {}
        self._classes: dict[str, list[str]] = {}
        self._auroc: dict[str, dict[str, float]] = {}
        self._accepted: set[str] = set()
        self._earlier_best: dict[str, Any] | None = None

    def handle_event(self, event_type: str, fl_ctx: FLContext) -> None:
        """Collect losses, and decide when all of a model's are in."""
        final = fl_ctx.get_prop(FLContextKey.WORKFLOW) in self.workflows
        if event_type == AppEventType.INITIAL_MODEL_LOADED:
            self._continue_from(fl_ctx.get_prop(BEST), fl_ctx)
        elif event_type == AppEventType.ROUND_STARTED or (
            event_type == EventType.START_WORKFLOW and final
        ):
            self._losses, self._classes, self._auroc = {}, {}, {}
        elif event_type == AppEventType.AFTER_CONTRIBUTION_ACCEPT:
            if fl_ctx.get_prop(AppConstants.AGGREGATION_ACCEPTED):
                result = fl_ctx.get_prop(AppConstants.TRAINING_RESULT)
                metrics = from_shareable(result).get_meta_prop(MetaKey.INITIAL_METRICS)
                self._accepted.add(site_of(fl_ctx))
                self._measured(metrics, fl_ctx)
        elif event_type == AppEventType.BEFORE_AGGREGATION:
            if not self._decide(fl_ctx.get_prop(AppConstants.CURRENT_ROUND), fl_ctx):
                manifest = current_global_model(fl_ctx).manifest
                manifest["not_compared"] = manifest.get("not_compared", 0) + 1
        elif event_type == AppEventType.VALIDATION_RESULT_RECEIVED and final:
            if self._votes(site_of(fl_ctx), fl_ctx):
                result = fl_ctx.get_prop(AppConstants.VALIDATION_RESULT)
                self._measured(from_shareable(result).data, fl_ctx)
        elif event_type == EventType.END_WORKFLOW and final:
            if not self._losses or _aborted(fl_ctx):
                return  # there was no model to measure, or not every site could
            self._decide(current_global_model(fl_ctx).manifest["round"], fl_ctx)
            self.fire_event(MODEL_VALIDATED, fl_ctx)

    def _votes(self, site: str, fl_ctx: FLContext) -> bool:
        """Whether a site trained in this run or the one continued, or measured the best model."""
        classes = current_global_model(fl_ctx).manifest.get("classes", {}).values()
        voters = self._accepted | {name for facts in classes for name in facts.get("sites", ())}
        if self._selection.best:
            voters |= self._selection.best.losses.keys()
        if site not in voters:
            self.log_warning(
                fl_ctx, f"what {site} measured does not count: no result of its was ever accepted"
            )
        return site in voters

    def _continue_from(self, record: dict[str, Any] | None, fl_ctx: FLContext) -> None:
        """Take over the best model of an earlier run, and of its rounds; or none."""
        self._earlier_best = record
        self._selection.best = self._rounds.best = None
        manifest = current_global_model(fl_ctx).manifest
        of_rounds = manifest.pop(BEST_OF_ROUNDS, record)
        if record is not None:
            self._selection.best = _of_record(record)
            self._set_best_of_rounds(_of_record(of_rounds), of_rounds, fl_ctx)
        else:
            fl_ctx.set_prop(BEST_ROUND, None, private=True, sticky=True)

    def _set_best_of_rounds(
        self, best: Measured, record: dict[str, Any], fl_ctx: FLContext
    ) -> None:
        self._rounds.best = best
        current_global_model(fl_ctx).manifest[BEST_OF_ROUNDS] = record
        fl_ctx.set_prop(BEST_ROUND, best.round, private=True, sticky=True)

    def _measured(self, metrics: object, fl_ctx: FLContext) -> None:
        site = site_of(fl_ctx)
        values = metrics if isinstance(metrics, dict) else {}
        loss = values.get(self.metric)
        if not isinstance(loss, float) or not 0 <= loss < math.inf:
            got = one_line(repr(loss))
            self.log_warning(fl_ctx, f"{site} sent no usable {self.metric!r}; got {got}")
            return
        self._auroc[site] = of_classes("auroc", values)
        self._losses[site] = loss
        self._classes[site] = sorted(declared_classes(fl_ctx))

    def _decide(self, round_: int, fl_ctx: FLContext) -> bool:
        """Whether the model could be compared with the best one of the rounds, or became it."""
        model = current_global_model(fl_ctx)
        columns = frozenset(model.columns)
        if validation := self._validation(model):
            model.manifest["validation"] = {"round": round_, "auroc": validation}
        candidate = Measured(round_, columns, dict(self._losses), dict(self._classes))
        if self._earlier_best and (why := self._incomparable(self._earlier_best, fl_ctx)):
            self._drop(why, self._earlier_best, fl_ctx)
        for site in fl_ctx.get_prop(GONE, {}):
            self._selection.sites.pop(site, None)  # who left for good is not waited for
        self._rounds.sites = self._selection.sites
        compared = CANDIDATE in model.manifest or self._compare_rounds(candidate, fl_ctx)
        verdict = self._selection.consider(candidate)
        if verdict.best:
            self._announce(candidate, verdict.why, fl_ctx)
        else:
            said = "is not better" if verdict.compared else "cannot be the best"
            name = _name(model.manifest | {"round": round_})
            self.log_info(fl_ctx, f"{name} {said}: {verdict.why}")
        return compared

    def _compare_rounds(self, model: Measured, fl_ctx: FLContext) -> bool:
        """Whether a round's model was compared with the best of the rounds', if any, or is it."""
        first = self._rounds.best is None
        verdict = self._rounds.consider(model)
        if verdict.best:
            current_global_model(fl_ctx).manifest.pop("not_compared", None)
            self._set_best_of_rounds(model, self._record(model), fl_ctx)
        return verdict.best or verdict.compared or first

    def _validation(self, model: GlobalModel) -> dict[str, dict[str, float]]:
        """Site -> class -> AUROC of the model, as its manifest keeps them; of a personal one none.

        A site measures a column that the model does not have only after it has warmed it up.
        """
        if has_personal(model.manifest.get("strategy", ""), personal_head=not model.columns):
            return {}
        return {
            site: {name: value for name, value in values.items() if name in model.columns}
            for site, values in sorted(self._auroc.items())
        }

    def _incomparable(self, record: dict[str, Any], fl_ctx: FLContext) -> str | None:
        """Why the earlier run's best loss is not one of this run's; None when it is."""
        if record["metric"] != self.metric:
            return f"its loss is {record['metric']!r}, and this run's is {self.metric!r}"
        here = {client.name for client in fl_ctx.get_engine().get_clients()}
        best = _of_record(record)
        earlier = {site: of for site, of in best.classes.items() if site in here}
        self._selection.sites = {**earlier, **self._selection.sites, **self._classes}
        return self._selection.objection(best)

    def _drop(self, why: str, record: dict[str, Any], fl_ctx: FLContext) -> None:
        self.log_warning(
            fl_ctx, f"the best model so far, of round {record['round']}, is dropped: {why}"
        )
        self._continue_from(None, fl_ctx)
        fl_ctx.set_prop(DROPPED, why, private=True, sticky=False)
        self.fire_event(BEST_DROPPED, fl_ctx)

    def _record(self, model: Measured) -> dict[str, Any]:
        return {
            "round": model.round,
            "metric": self.metric,
            "value": model.mean(model.losses),
            "sites": dict(sorted(model.losses.items())),
            "classes": dict(sorted(model.classes.items())),
            "columns": sorted(model.columns),
        }

    def _announce(self, model: Measured, why: str, fl_ctx: FLContext) -> None:
        best = self._record(model)
        loss = best["value"]
        if made := current_global_model(fl_ctx).manifest.get(CANDIDATE):
            best[CANDIDATE] = made
        selection = {
            "source": type(self).__name__,
            "key_metric": {"name": self.metric, "mode": "min"},
            "best_round": model.round,
            "best_metrics": {self.metric: loss},
        }
        self._earlier_best = None
        self.log_info(
            fl_ctx,
            f"{_name(best)} is the best: {self.metric} {loss:.4f} over "
            f"{len(model.losses)} sites; {why}",
        )
        for name, value in (
            (BEST, best),
            (AppConstants.VALIDATION_RESULT, loss),
            (AppConstants.METRICS_SELECTION_INFO, selection),
        ):
            fl_ctx.set_prop(name, value, private=True, sticky=False)
        self.fire_event(AppEventType.GLOBAL_BEST_MODEL_AVAILABLE, fl_ctx)


def _aborted(fl_ctx: FLContext) -> bool:
    """Whether the run is ended early; FLARE ends its workflows all the same."""
    signal = fl_ctx.get_run_abort_signal()
    fatal = bool(fl_ctx.get_prop(FLContextKey.FATAL_SYSTEM_ERROR))
    return fatal or bool(signal and signal.triggered)


def _name(facts: Mapping[str, Any]) -> str:
    """A model for people, by its round and whether it is a candidate."""
    made = {AVERAGE: ", averaged over late rounds,", REFIT: ", its columns fitted anew,"}
    return f"the model of round {facts['round']}{made.get(facts.get(CANDIDATE, ''), '')}"


def _of_record(best: dict[str, Any]) -> Measured:
    """The model of a record, see `BEST`, without sites whose classes it does not say."""
    classes = best.get("classes", {})
    has = best.get("columns", [name for of in classes.values() for name in of])
    losses = {site: loss for site, loss in best.get("sites", {}).items() if site in classes}
    return Measured(best["round"], frozenset(has), losses, classes)
