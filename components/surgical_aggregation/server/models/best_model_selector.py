"""Which global model is the best: the one with the smallest mean validation loss over sites."""

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
"""Where it is said that the run is ended early; FLARE ends its workflows all the same."""


@dataclass(eq=False)
class BestModelSelector(FLComponent):
    """Announce the global model with the smallest mean over sites of a validation loss.

    Runs on the server. "The model of round r" is the one that round r starts from. Each site
    measures it before training and sends the loss with its result; validation workflows measure the
    final model after the last round, and the `candidates` that were made from those of the rounds.
    So the first and the last model can be the best, too.

    The manifest of a model that was measured has its AUROC by site and class.

    Sites may be absent; see `model_selection`. A site whose results were all refused does not vote
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

    metric: str = "bce"
    workflows: Sequence[str] = ("validate_final", "validate_average", "validate_refit")
    min_share: float = 0.5

    def __post_init__(self) -> None:
        super().__init__()
        self._selection = Selection(self.metric, self.min_share)

    def handle_event(self, event_type: str, fl_ctx: FLContext) -> None:
        """Collect losses, and decide when all of a model's are in."""
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
            if selection.votes(site, [s for of in facts.values() for s in of.get("sites", ())]):
                self._measure(fl_ctx)
            else:
                why = "no result of its was ever accepted"
                self.log_warning(fl_ctx, f"what {site} measured does not count: {why}")
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
        """Decide on the model that a round started from; None: the final one, or a candidate."""
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
            said = f"the best model so far, of round {earlier}, is dropped: {why}"
            self.log_warning(fl_ctx, said)
            self._set_best_of_rounds(None, fl_ctx)
            fl_ctx.set_prop(headers.DROPPED, {"reason": why}, private=True, sticky=False)
            self.fire_event(headers.BEST_DROPPED, fl_ctx)
        if decision.best_of_rounds:
            self._set_best_of_rounds(decision.record, fl_ctx)
        record = decision.record | ({headers.CANDIDATE: made} if made else {})
        if decision.verdict.best:
            self._announce(record, decision.verdict.why, fl_ctx)
        else:
            said = "is not better" if decision.verdict.compared else "cannot be the best"
            self.log_info(fl_ctx, f"{_name(record)} {said}: {decision.verdict.why}")

    def _announce(self, best: Mapping[str, Any], why: str, fl_ctx: FLContext) -> None:
        loss = best["value"]
        selection = {
            "source": type(self).__name__,
            "key_metric": {"name": self.metric, "mode": "min"},
            "best_round": best["round"],
            "best_metrics": {self.metric: loss},
        }
        said = f"{self.metric} {loss:.4f} over {len(best['sites'])} sites; {why}"
        self.log_info(fl_ctx, f"{_name(best)} is the best: {said}")
        for name, value in (
            (headers.BEST, best),
            (AppConstants.VALIDATION_RESULT, loss),
            (AppConstants.METRICS_SELECTION_INFO, selection),
        ):
            fl_ctx.set_prop(name, value, private=True, sticky=False)
        self.fire_event(AppEventType.GLOBAL_BEST_MODEL_AVAILABLE, fl_ctx)


def _name(facts: Mapping[str, Any]) -> str:
    """A model for people, by its round and whether it is a candidate."""
    made = {
        headers.AVERAGE: ", averaged over late rounds,",
        headers.REFIT: ", its columns refitted,",
    }
    return f"the model of round {facts['round']}{made.get(facts.get(headers.CANDIDATE, ''), '')}"
