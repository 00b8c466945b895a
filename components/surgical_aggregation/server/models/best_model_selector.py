"""Select the best global model by its mean validation loss over sites."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nvflare.apis.event_type import EventType
from nvflare.apis.fl_component import FLComponent
from nvflare.apis.fl_constant import FLContextKey, ReservedKey
from nvflare.apis.fl_context import FLContext
from nvflare.app_common.app_constant import AppConstants
from nvflare.app_common.app_event_type import AppEventType

from surgical_aggregation.aggregation.model_selection import Selection
from surgical_aggregation.server.access.job_sites import declared_classes, site_of
from surgical_aggregation.server.models.global_model import GlobalModel, needs_federated_training
from surgical_aggregation.wire import headers, results
from surgical_aggregation.wire.untrusted_text import one_line

_ENDED = (ReservedKey.RUN_ABORT_SIGNAL, FLContextKey.FATAL_SYSTEM_ERROR)
"""Properties that mark a run as ended early; FLARE fires END_WORKFLOW then, too."""


@dataclass(eq=False)
class BestModelSelector(FLComponent):
    """Announce the best global model by the mean over sites of a validation loss.

    Runs on the server. "The model of round r" is the one that round r starts from. Each site
    validates it before training and sends the loss with its result; after the last round,
    validation workflows evaluate the final model and the `candidates`. So the first and the last
    model can be selected, too. A validated model's manifest has its AUROC by site and class.

    Sites may be absent, and one site's loss may be clipped; see `aggregation.model_selection`. A
    site whose results were all refused has no vote on the final model.

    Early stopping counts from the best of the rounds' models and ignores candidates, which every
    job makes at its end. The manifest has the record of that model (`best_of_rounds`), and the
    number of later rounds whose models could not be compared with it (`not_compared`).

    A resumed run starts with the earlier run's best model, compared over the sites of this run. It
    is dropped if it could not be selected in this run, or if the loss is another metric.

    Args:
        metric: Name of the loss in the sites' metrics. Default "bce".
        workflows: Ids of the workflows that validate the final model and the candidates. Default
            ("validate_final", "validate_average", "validate_refit").
        min_share: Share of the run's sites that must have measured a model, and both of two
            compared models; above 0, at most 1. Default 0.5.

    Raises:
        ValueError: `min_share` is out of range.
    """

    metric: str = "bce"
    workflows: Sequence[str] = ("validate_final", "validate_average", "validate_refit")
    min_share: float = 0.5

    def __post_init__(self) -> None:
        super().__init__()
        self._selection = Selection(self.metric, self.min_share)

    def handle_event(self, event_type: str, fl_ctx: FLContext) -> None:
        """Collect losses, and decide when a model's evaluation is complete."""
        final = fl_ctx.get_prop(FLContextKey.WORKFLOW) in self.workflows
        selection = self._selection
        if event_type == EventType.START_RUN:
            needs_federated_training(self, "the choice of the best model", fl_ctx)
        elif event_type == AppEventType.INITIAL_MODEL_LOADED:
            best = fl_ctx.get_prop(headers.BEST)
            of_rounds = GlobalModel.current(fl_ctx).manifest.get(headers.BEST_OF_ROUNDS, best)
            selection.continue_from(best, of_rounds)
            self._set_best_of_rounds(best and of_rounds, fl_ctx)
        elif event_type == AppEventType.ROUND_STARTED or (
            event_type == EventType.START_WORKFLOW and final
        ):
            selection.begin()
        elif event_type == AppEventType.AFTER_CONTRIBUTION_ACCEPT:
            if fl_ctx.get_prop(AppConstants.AGGREGATION_ACCEPTED):
                selection.accept(site_of(fl_ctx))
                self._measure(fl_ctx)
        elif event_type == AppEventType.BEFORE_AGGREGATION:
            self._decide(fl_ctx.get_prop(AppConstants.CURRENT_ROUND), fl_ctx)
        elif event_type == AppEventType.VALIDATION_RESULT_RECEIVED and final:
            site, facts = site_of(fl_ctx), GlobalModel.current(fl_ctx).manifest.get("classes", {})
            if selection.votes(site, [s for f in facts.values() for s in f.get("sites", ())]):
                self._measure(fl_ctx)
            else:
                why = "none of its training results was accepted"
                self.log_warning(fl_ctx, f"{site} has no vote on this model: {why}")
        elif event_type == EventType.END_WORKFLOW and final:
            signal, failed = map(fl_ctx.get_prop, _ENDED)
            if selection.measured and not failed and not (signal and signal.triggered):
                self._decide(None, fl_ctx)
                self.fire_event(headers.MODEL_VALIDATED, fl_ctx)

    def _measure(self, fl_ctx: FLContext) -> None:
        site, metrics = site_of(fl_ctx), results.current(fl_ctx).metrics
        if not self._selection.measure(site, metrics, declared_classes(fl_ctx)):
            got = one_line(repr(metrics.get(self.metric)))
            self.log_warning(fl_ctx, f"{site} sent no usable {self.metric!r}; got {got}")

    def _set_best_of_rounds(self, record: Mapping[str, Any] | None, fl_ctx: FLContext) -> None:
        manifest = GlobalModel.current(fl_ctx).manifest
        GlobalModel.set_manifest(manifest.with_best_of_rounds(record), fl_ctx)
        best = None if record is None else record["round"]
        fl_ctx.set_prop(headers.BEST_ROUND, best, private=True, sticky=True)

    def _decide(self, round_: int | None, fl_ctx: FLContext) -> None:
        """Decide on the model that a round started from; None: the final model or a candidate."""
        model = GlobalModel.current(fl_ctx)
        manifest, selection = model.manifest, self._selection
        number = manifest.round if round_ is None else round_
        auroc = {} if model.is_personal else selection.auroc(model.columns)
        if auroc:
            manifest = manifest.with_facts(validation={"round": number, "auroc": auroc})
        made = manifest.get(headers.CANDIDATE)
        sites = {client.name for client in fl_ctx.get_engine().get_clients()}
        decision = selection.decide(
            number, model.columns, sites=sites, gone=fl_ctx.get_prop(headers.GONE, {}),
            candidate=made is not None,
        )  # fmt: skip
        if decision.best_of_rounds:
            manifest = manifest.without("not_compared")
        elif not decision.compared and round_ is not None:
            manifest = manifest.with_facts(not_compared=manifest.get("not_compared", 0) + 1)
        GlobalModel.set_manifest(manifest, fl_ctx)
        if decision.dropped:
            earlier, why = decision.dropped
            text = f"the best model so far, of round {earlier}, is dropped: {why}"
            self.log_warning(fl_ctx, text)
            self._set_best_of_rounds(None, fl_ctx)
            fl_ctx.set_prop(headers.DROPPED, {"reason": why}, private=True, sticky=False)
            self.fire_event(headers.BEST_DROPPED, fl_ctx)
        if decision.best_of_rounds:
            self._set_best_of_rounds(decision.record, fl_ctx)
        record = decision.record | ({headers.CANDIDATE: made} if made else {})
        if decision.verdict.best:
            self._announce(record, decision.verdict.why, fl_ctx)
        else:
            outcome = "is not better" if decision.verdict.compared else "cannot be the best"
            self.log_info(fl_ctx, f"{_name(record)} {outcome}: {decision.verdict.why}")

    def _announce(self, best: Mapping[str, Any], why: str, fl_ctx: FLContext) -> None:
        loss = best["value"]
        selection = {
            "source": type(self).__name__,
            "key_metric": {"name": self.metric, "mode": "min"},
            "best_round": best["round"],
            "best_metrics": {self.metric: loss},
        }
        value = f"{self.metric} {loss:.4f} over {len(best['sites'])} sites; {why}"
        self.log_info(fl_ctx, f"{_name(best)} is the best: {value}")
        for name, fact in (
            (headers.BEST, best),
            (AppConstants.VALIDATION_RESULT, loss),
            (AppConstants.METRICS_SELECTION_INFO, selection),
        ):
            fl_ctx.set_prop(name, fact, private=True, sticky=False)
        self.fire_event(AppEventType.GLOBAL_BEST_MODEL_AVAILABLE, fl_ctx)


def _name(facts: Mapping[str, Any]) -> str:
    """Name of a model in logs: its round, and how it was made."""
    made = {
        headers.AVERAGE: ", averaged over late rounds,",
        headers.REFIT: ", its columns refitted,",
    }
    return f"the model of round {facts['round']}{made.get(facts.get(headers.CANDIDATE, ''), '')}"
