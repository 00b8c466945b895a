"""The surgical aggregator: body over all sites, each column over the sites that label its class."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from nvflare.apis.dxo import DXO, DataKind
from nvflare.apis.event_type import EventType
from nvflare.apis.fl_constant import FLContextKey
from nvflare.apis.fl_context import FLContext
from nvflare.apis.shareable import Shareable
from nvflare.app_common.abstract.fl_model import FLModel, ParamsType
from nvflare.app_common.abstract.model import ModelLearnable
from nvflare.app_common.aggregators.model_aggregator import ModelAggregator
from nvflare.app_common.app_constant import AppConstants
from nvflare.app_common.app_event_type import AppEventType

from surgical_aggregation.aggregation import batch_norm_strategy as strategies
from surgical_aggregation.aggregation import result_checks
from surgical_aggregation.aggregation import weighting as weightings
from surgical_aggregation.aggregation.averaging import Array, column_similarity, mean_by_name
from surgical_aggregation.aggregation.class_names import Spellings
from surgical_aggregation.aggregation.site_result import SiteResult
from surgical_aggregation.aggregation.site_result import limits as limits_by_name
from surgical_aggregation.server.access import class_filters
from surgical_aggregation.server.access.job_sites import site_of
from surgical_aggregation.server.access.refusal_events import announce
from surgical_aggregation.server.models.global_model import GlobalModel, MergeIntoGlobalModel
from surgical_aggregation.server.models.model_files import job_folder
from surgical_aggregation.server.models.result_files import ArraysFile, NoRoomError, on_disk
from surgical_aggregation.wire import flare_internals, headers, results
from surgical_aggregation.wire import variables as wire

__all__ = ["SurgicalAggregator"]


@dataclass(eq=False)
class SurgicalAggregator(ModelAggregator):
    """Average body variables over all sites, and each class's column over the sites that label it.

    Runs on the server, under FLARE's ScatterAndGather (`accept`, `aggregate`) or FedAvg
    (`accept_model`, `aggregate_model`). Results must have a labelled head (see `wire.variables`).
    Variables that no site sent are not in the aggregate, so it must be merged into the last global
    model: ScatterAndGather needs `MergeIntoGlobalModel` as its shareable generator; FedAvg receives
    the merged model. Differences (kind WEIGHT_DIFF) are first added to the model that the round
    started from, or to zeros for a class that it does not have.

    A result is refused as a whole, with site, round and reason, if it is late, a second one from
    the same site, over a limit, or malformed (see `result_checks.fault`). A class is spelt as in
    the global model, or else as in the first accepted result. A refusal may name another site's
    class, so it stays in the server's log and record.

    Sums run in the order of site names, so two runs with the same results agree bit for bit.
    Results are stored in files until the round ends (see `ArraysFile`) and averaged variable by
    variable, so many sites need little memory. If the disk is full, the run ends with the reason.

    Under FedAvg, the run ends at its start if `SelectHead` or `CheckResult` is not among the
    server's filters of the task: FedAvg would send every site the whole model with its manifest.

    Args:
        strategy: Which body variables sites keep or freeze, and so which they send; see
            `aggregation.batch_norm_strategy`. Must equal the sites'. Default "fedbn+".
        personal_head: Whether heads stay at their sites; results must then have no columns. Default
            False.
        body_weighting: The paper's strategy f: "mean" (default, the papers), "samples", or another,
            see `weighting`.
        head_weighting: The paper's strategy g: "mean" (default, the papers), "samples",
            "positives", or another.
        limits: Name of a limit -> value, for those that differ from the default; see `Limits`.
            Default None.
        columns_only: Whether results have columns and no body, see `ModelRefit`. Default False.

    Source:
        Kulkarni et al., "From Isolation to Collaboration", ML4H 2024, Section 3.
    """

    strategy: str | strategies.Strategy = "fedbn+"
    personal_head: bool = False
    body_weighting: str | Any = "mean"
    head_weighting: str | Any = "mean"
    limits: Mapping[str, int] | None = None
    columns_only: bool = False

    def __post_init__(self) -> None:
        super().__init__()
        strategies.find(self.strategy)
        limits_by_name(self.limits)
        known = weightings.SITE_WEIGHTINGS, weightings.HEAD_WEIGHTINGS
        self._body_weight = weightings.find("body_weighting", self.body_weighting, known[0])
        self._column_weight = weightings.find("head_weighting", self.head_weighting, known[1])
        self._lock = threading.Lock()
        self._forget()

    def _forget(self) -> None:
        self._accepted: dict[str, SiteResult] = {}
        self._start: tuple[GlobalModel, result_checks.Expected] | None = None
        self._closed = False

    def handle_event(self, event_type: str, fl_ctx: FLContext) -> None:
        """Set up receiving on disk; record the strategy, and end the run if the model is unfit."""
        super().handle_event(event_type, fl_ctx)
        if event_type == EventType.START_RUN:
            end_run = partial(self._end_run, fl_ctx.get_engine())
            most = limits_by_name(self.limits).result_bytes
            flare_internals.receive_arrays(partial(ArraysFile, job_folder(fl_ctx), most, end_run))
            flare_internals.receive_results_of(len(fl_ctx.get_engine().get_clients()))
            flare_internals.forget_sent_messages()
            for workflow in class_filters.model_controllers(fl_ctx):
                task = getattr(workflow, "task_name", AppConstants.TASK_TRAIN)
                if why := class_filters.lacking_guards(task, class_filters.TRAINED, fl_ctx):
                    self.system_panic(why, fl_ctx)
        elif event_type == AppEventType.INITIAL_MODEL_LOADED:
            loaded = fl_ctx.get_prop(AppConstants.GLOBAL_MODEL)
            if not isinstance(loaded, ModelLearnable) or loaded.is_empty():
                return  # the persistor has ended the run
            model = GlobalModel.from_learnable(loaded)
            GlobalModel.set_manifest(model.manifest.with_strategy(self.strategy), fl_ctx)
            try:
                strategies.check_body(self.strategy, model.body, model.kinds)
            except strategies.StrategyError as error:
                self.system_panic(str(error), fl_ctx)

    def _end_run(self, engine: Any, error: NoRoomError) -> None:
        with engine.new_context() as fl_ctx:
            self.system_panic(str(error), fl_ctx)

    def accept(self, shareable: Shareable, fl_ctx: FLContext) -> bool:
        """Add one site's result to the round; never raises, since that would end it for all.

        Returns:
            Whether the result will be averaged; if not, the refusal has been announced.
        """
        sent_in = shareable.get_cookie(AppConstants.CONTRIBUTION_ROUND)
        read = partial(results.trained, shareable)
        return self._add(site_of(fl_ctx), read, sent_in, fl_ctx) is None

    def accept_model(self, model: FLModel) -> None:
        """Add one site's result to the round of FLARE's FedAvg.

        Raises:
            ValueError: It is refused, which has been announced; FedAvg continues without this site.
        """
        sent_in = self.fl_ctx.get_prop(AppConstants.CURRENT_ROUND)  # FedAvg drops late ones
        read = partial(results.of_model, model)
        if reason := self._add(model.meta["client_name"], read, sent_in, self.fl_ctx):
            raise ValueError(reason)

    def _add(
        self, site: str, read: Callable[[], SiteResult], sent_in: object, fl_ctx: FLContext
    ) -> str | None:
        """Why a site's result is refused, which has been announced; None: it was added."""
        current = fl_ctx.get_prop(AppConstants.CURRENT_ROUND)
        try:
            with self._lock:  # FLARE may call from several threads
                reason = self._objection(site, read, sent_in, fl_ctx)
        except NoRoomError as error:  # not the site's fault
            reason = str(error).rstrip(".")
            self._end_run(fl_ctx.get_engine(), error)
        except Exception as error:
            reason = f"it could not be read ({type(error).__name__}: {error})"
        if reason is not None:
            task = fl_ctx.get_prop(FLContextKey.TASK_NAME, AppConstants.TASK_TRAIN)
            announce(self, fl_ctx, site, task, current, reason)
        return reason

    def _objection(
        self, site: str, read: Callable[[], SiteResult], sent_in: object, fl_ctx: FLContext
    ) -> str | None:
        current = fl_ctx.get_prop(AppConstants.CURRENT_ROUND)
        if sent_in != current:
            return f"it belongs to round {sent_in}, but round {current} is running"
        if self._closed:
            return f"round {current} has been averaged already"
        if site in self._accepted:
            return "the site has already sent a result in this round"
        if self._start is None:  # once a round: the model does not change before it is averaged
            model = GlobalModel.current(fl_ctx)
            self._start = model, self._expected(model)
        model, expected = self._start
        sent = fl_ctx.get_prop(headers.RESULT) or read()
        result = self._as_weights(sent, model)
        too_large = result_checks.oversize(result, expected.limits)
        if reason := too_large or self._fault(result, expected):
            return reason
        try:
            self._weights(site, result)  # a site that cannot be weighed must not end the round
        except weightings.WeightingError as error:
            return str(error).rstrip(".")
        if sent.differences:
            sums = wire.join(result.body, result.columns)  # new arrays, so in memory
            result = _with_variables(result, on_disk(sums, job_folder(fl_ctx)))
        self._accepted[site] = result
        expected.known.add(result.columns)
        return None

    def _as_weights(self, sent: SiteResult, model: GlobalModel) -> SiteResult:
        """The result with trained variables, in place of differences if the site sent these."""
        if not sent.differences:
            return sent
        differences = wire.join(sent.body, sent.columns)
        return _with_variables(sent, result_checks.added(differences, model.variables))

    def _weights(self, site: str, result: SiteResult) -> dict[str, float]:
        """A site's weight for each variable, by its name on the wire."""
        body = self._body_weight(site, result, None)
        head = {name: self._column_weight(site, result, name) for name in result.columns}
        columns = {name: (own, own) for name, own in head.items()}
        return wire.join(dict.fromkeys(result.body, body), columns)

    def _fault(self, result: SiteResult, expected: result_checks.Expected) -> str | None:
        return result_checks.fault(result, expected)

    def _expected(self, model: GlobalModel) -> result_checks.Expected:
        return result_checks.Expected(
            model.body,
            model.features,
            model.kinds,
            self.strategy,
            self.personal_head,
            self.columns_only,
            Spellings(model.columns),
            limits_by_name(self.limits),
            model.columns,
        )

    def aggregate(self, fl_ctx: FLContext) -> Shareable:
        """Average the accepted results; sets `ACCEPTED` and `COLUMN_SIMILARITY` in the context.

        Returns:
            DXO of kind WEIGHTS with the averaged variables.

        Raises:
            WeightingError: No result was accepted; FLARE would continue with an empty round.
        """
        return self._aggregate(fl_ctx).to_shareable()

    def aggregate_model(self) -> FLModel:
        """Average a round of FLARE's FedAvg, and make the new global model the context's.

        Returns:
            All of its variables, with its manifest as meta.

        Raises:
            WeightingError: No result was accepted.
        """
        model = MergeIntoGlobalModel().merged(self._aggregate(self.fl_ctx), self.fl_ctx)
        model.set_current(self.fl_ctx)
        meta = dict(model.manifest)
        return FLModel(params_type=ParamsType.FULL, params=model.variables, meta=meta)

    def _aggregate(self, fl_ctx: FLContext) -> DXO:
        with self._lock:
            self._closed = True
            accepted = dict(sorted(self._accepted.items()))
        if not accepted:
            raise weightings.WeightingError(
                f"round {fl_ctx.get_prop(AppConstants.CURRENT_ROUND)} needs at least one accepted "
                "result; got none. The server's log has the reason of every refusal."
            )
        similarity = self._similarity(accepted)
        fl_ctx.set_prop(headers.COLUMN_SIMILARITY, similarity, private=True, sticky=False)
        fl_ctx.set_prop(headers.ACCEPTED, accepted, private=True, sticky=False)
        return DXO(DataKind.WEIGHTS, data=self._average(accepted))

    def _average(self, accepted: Mapping[str, SiteResult]) -> dict[str, Array]:
        sent = [wire.join(result.body, result.columns) for result in accepted.values()]
        weights = [self._weights(site, result) for site, result in accepted.items()]
        return mean_by_name(sent, weights)

    def _similarity(self, accepted: Mapping[str, SiteResult]) -> dict[str, float]:
        return column_similarity([result.columns for result in accepted.values()])

    def reset(self, fl_ctx: FLContext) -> None:
        """Forget the round."""
        self.fl_ctx = fl_ctx
        self.reset_stats()

    def reset_stats(self) -> None:
        """Forget the round of FLARE's FedAvg."""
        self.fl_ctx.set_prop(headers.ACCEPTED, None, private=True, sticky=False)
        with self._lock:
            self._forget()


def _with_variables(result: SiteResult, variables: Mapping[str, Array]) -> SiteResult:
    body, columns = wire.split(variables)
    return replace(result, body=body, columns=columns)
