"""The surgical aggregator: body over all sites, each column over the sites that label its class."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from nvflare.apis.dxo import DXO, DataKind, MetaKey
from nvflare.apis.event_type import EventType
from nvflare.apis.fl_constant import FLContextKey
from nvflare.apis.fl_context import FLContext
from nvflare.apis.shareable import Shareable
from nvflare.app_common.abstract.aggregator import Aggregator
from nvflare.app_common.abstract.model import ModelLearnable
from nvflare.app_common.app_constant import AppConstants
from nvflare.app_common.app_event_type import AppEventType

from surgical_aggregation.aggregation import result_checks
from surgical_aggregation.aggregation import strategy as strategies
from surgical_aggregation.aggregation import weighting as weightings
from surgical_aggregation.aggregation.averaging import Array, column_similarity, mean_by_name
from surgical_aggregation.aggregation.class_names import Spellings
from surgical_aggregation.aggregation.result_checks import Contribution, Expected
from surgical_aggregation.aggregation.size_limits import limits as limits_by_name
from surgical_aggregation.aggregation.weighting import WeightingError, head_weights, site_weight
from surgical_aggregation.server.access.refusal_events import Refusal, announce
from surgical_aggregation.server.access.site_identity import site_of
from surgical_aggregation.server.models.global_model import (
    GlobalModel,
    current_global_model,
    from_learnable,
)
from surgical_aggregation.server.models.model_files import job_folder
from surgical_aggregation.server.models.result_files import ArraysFile, NoRoomError, on_disk
from surgical_aggregation.wire import flare_internals
from surgical_aggregation.wire import variables as wire
from surgical_aggregation.wire.headers import (
    ACCEPTED,
    COLUMN_SIMILARITY,
    LACKING,
    POSITIVES,
    TRAINED_BY,
)


class SurgicalAggregator(Aggregator):
    """Average body variables over all sites, and each class's column over the sites that label it.

    Runs on the server, under FLARE's ScatterAndGather. Takes results whose head is labelled (see
    `wire`). What no site sent is not in the aggregate, so the shareable generator must merge it
    into the last global model (`MergeIntoGlobalModel`). Differences (kind WEIGHT_DIFF) are first
    added to the model that the round started from, or to zeros where it has no column.

    A result is refused whole, with site, round and reason, when it is late, a second one of the
    same site, beyond a limit, or malformed (see `result_checks.fault`). The spelling of a class is
    the global model's, or else that of the first accepted result. A refusal may name another site's
    class, so it goes no further than the server's log and record. Sums run in site-name order: two
    runs with the same results agree bit for bit. From their arrival to the round's end results are
    in files (see `ArraysFile`), and are averaged variable by variable, so that the results of many
    sites need little memory. Where the disk takes no more, the run ends with the reason.

    Args:
        strategy: What sites do with batch normalisation, and so what they send; see `strategy`. The
            same as the sites'. Default "fedbn+".
        personal_head: Every head stays at its site: results must have no columns. Default False.
        body_weighting: Strategy f: "mean" (default, the papers) or "samples".
        head_weighting: Strategy g: "mean" (default, the papers), "samples" or "positives".
        limits: Name of a limit -> its value, where it is not the default; see `Limits`.
        columns_only: Results have columns and no body, see `ModelRefit`. Default False.

    Source:
        Kulkarni et al., "From Isolation to Collaboration", ML4H 2024, Section 3.
    """

    def __init__(
        self,
        strategy: str = "fedbn+",
        personal_head: bool = False,
        body_weighting: str = "mean",
        head_weighting: str = "mean",
        limits: Mapping[str, int] | None = None,
        columns_only: bool = False,
    ):
        super().__init__()
        strategies.check(strategy)
        limits_by_name(limits)
        weightings.check("body_weighting", body_weighting, weightings.SITE_WEIGHTINGS)
        weightings.check("head_weighting", head_weighting, weightings.HEAD_WEIGHTINGS)
        self.strategy = strategy
        self.personal_head = personal_head
        self.body_weighting = body_weighting
        self.head_weighting = head_weighting
        self.limits = limits
        self.columns_only = columns_only
        self._lock = threading.Lock()
        self._accepted: dict[str, Contribution] = {}
        self._start: tuple[GlobalModel, Expected] | None = None
        self._closed = False

    def handle_event(self, event_type: str, fl_ctx: FLContext) -> None:
        """Receive results on disk; note the strategy, and end the run where its model is unfit."""
        super().handle_event(event_type, fl_ctx)
        if event_type == EventType.START_RUN:
            without_room = partial(self._end_run, fl_ctx.get_engine())
            flare_internals.receive_arrays(partial(ArraysFile, job_folder(fl_ctx), without_room))
            flare_internals.receive_results_of(len(fl_ctx.get_engine().get_clients()))
            flare_internals.forget_sent_messages()
        if event_type != AppEventType.INITIAL_MODEL_LOADED:
            return
        loaded = fl_ctx.get_prop(AppConstants.GLOBAL_MODEL)
        if not isinstance(loaded, ModelLearnable) or loaded.is_empty():
            return  # whoever could not load it has ended the run
        model = from_learnable(loaded)
        model.manifest["strategy"] = self.strategy
        try:
            strategies.check_start(self.strategy, model.kinds, model.body)
        except strategies.StrategyError as error:
            self.system_panic(str(error), fl_ctx)

    def _end_run(self, engine: Any, error: NoRoomError) -> None:
        with engine.new_context() as fl_ctx:
            self.system_panic(str(error), fl_ctx)

    def accept(self, shareable: Shareable, fl_ctx: FLContext) -> bool:
        """Take one site's result into the round; never raises: that would end it for every site.

        Returns:
            Whether the result will be averaged; a refusal has been announced.
        """
        site = site_of(fl_ctx)
        current = fl_ctx.get_prop(AppConstants.CURRENT_ROUND)
        try:
            with self._lock:  # FLARE may call from several threads
                reason = self._take(site, shareable, current, fl_ctx)
        except NoRoomError as error:  # no fault of the site's
            reason = str(error).rstrip(".")
            self._end_run(fl_ctx.get_engine(), error)
        except Exception as error:
            reason = f"it could not be read ({type(error).__name__}: {error})"
        if reason is None:
            return True
        task = fl_ctx.get_prop(FLContextKey.TASK_NAME)
        announce(self, Refusal(site, task, current, reason), fl_ctx)
        return False

    def _take(self, site: str, shareable: Shareable, current: int, fl_ctx: FLContext) -> str | None:
        """Why a result is refused; None where it was taken."""
        sent_in = shareable.get_cookie(AppConstants.CONTRIBUTION_ROUND)
        if sent_in != current:
            return f"it belongs to round {sent_in}, and round {current} is running"
        if self._closed:
            return f"round {current} has been averaged already"
        if site in self._accepted:
            return "the site has already given its result of this round"
        if self._start is None:  # once a round: the model does not change before it is averaged
            model = current_global_model(fl_ctx)
            self._start = model, self._expected(model)
        model, expected = self._start
        contribution = self._read(shareable, model)
        too_large = result_checks.oversize(contribution, expected.limits)
        if reason := too_large or self._fault(contribution, expected):
            return reason
        try:
            self._weights(contribution)  # a site that cannot be weighed must not end the round
        except WeightingError as error:
            return str(error).rstrip(".")
        if wire.result(shareable).data_kind == DataKind.WEIGHT_DIFF:
            sums = wire.join(contribution.body, contribution.columns)  # new, so still in memory
            body, columns = wire.split(on_disk(sums, job_folder(fl_ctx)))
            contribution = replace(contribution, body=body, columns=columns)
        self._accepted[site] = contribution
        expected.known.add(contribution.columns)
        return None

    def _read(self, shareable: Shareable, model: GlobalModel) -> Contribution:
        dxo = wire.result(shareable)
        if dxo.data_kind == DataKind.WEIGHT_DIFF:
            dxo.data = result_checks.added(dxo.data, model.variables)
        return labelled(dxo)

    def _weights(self, contribution: Contribution) -> dict[str, float]:
        """A site's weight for each variable, by its name on the wire."""
        body = site_weight(self.body_weighting, contribution)
        head = head_weights(self.head_weighting, contribution)
        columns = {name: (own, own) for name, own in head.items()}
        return wire.join(dict.fromkeys(contribution.body, body), columns)

    def _fault(self, contribution: Contribution, expected: Expected) -> str | None:
        return result_checks.fault(contribution, expected)

    def _expected(self, model: GlobalModel) -> Expected:
        return Expected(
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
        """Average what was accepted; `COLUMN_SIMILARITY` goes into the context.

        Returns:
            Averaged variables as weights; meta says which sites trained each class, and what
            it lacks there.

        Raises:
            WeightingError: No result was accepted. FLARE would otherwise go on with an empty round.
        """
        with self._lock:
            self._closed = True
            accepted = dict(sorted(self._accepted.items()))
        if not accepted:
            raise WeightingError(
                f"round {fl_ctx.get_prop(AppConstants.CURRENT_ROUND)} needs the accepted result of "
                "one site at least; got none. The server's log says which were refused, and why."
            )
        fl_ctx.set_prop(COLUMN_SIMILARITY, self._similarity(accepted), private=True, sticky=False)
        fl_ctx.set_prop(ACCEPTED, accepted, private=True, sticky=False)
        data = self._average(accepted)
        trained_by = {
            name: [site for site, c in accepted.items() if name in c.columns]
            for name in wire.classes_of(data)
        }
        lacking = {
            name: {site: accepted[site].lacking[name] for site in sites}
            for name, of in trained_by.items()
            if (sites := [site for site in of if name in accepted[site].lacking])
        }
        meta = {TRAINED_BY: trained_by, LACKING: lacking}
        return DXO(DataKind.WEIGHTS, data=data, meta=meta).to_shareable()

    def _average(self, accepted: Mapping[str, Contribution]) -> dict[str, Array]:
        sent = [wire.join(c.body, c.columns) for c in accepted.values()]
        return mean_by_name(sent, [self._weights(c) for c in accepted.values()])

    def _similarity(self, accepted: Mapping[str, Contribution]) -> dict[str, float]:
        return column_similarity([contribution.columns for contribution in accepted.values()])

    def reset(self, fl_ctx: FLContext) -> None:
        """Forget the round."""
        fl_ctx.set_prop(ACCEPTED, None, private=True, sticky=False)
        with self._lock:
            self._accepted = {}
            self._start = None
            self._closed = False


def labelled(dxo: DXO) -> Contribution:
    """A site's result, its head by class.

    Raises:
        WireError: It is not a body with labelled columns.
    """
    samples, positives = map(dxo.get_meta_prop, (MetaKey.NUM_STEPS_CURRENT_ROUND, POSITIVES))
    return Contribution(*wire.split(dxo.data), samples, positives, dxo.get_meta_prop(LACKING, {}))
