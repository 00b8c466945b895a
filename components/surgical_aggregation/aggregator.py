"""The surgical aggregator: body over all sites, each column over the sites that hold its class."""

from __future__ import annotations

import threading

from nvflare.apis.dxo import DXO, DataKind, MetaKey
from nvflare.apis.fl_context import FLContext
from nvflare.apis.shareable import Shareable
from nvflare.app_common.abstract.aggregator import Aggregator
from nvflare.app_common.app_constant import AppConstants

from surgical_aggregation import wire
from surgical_aggregation.averaging import mean_by_name
from surgical_aggregation.contribution import Contribution, Expected, fault
from surgical_aggregation.declaration import peer_name
from surgical_aggregation.global_model import HOLDERS, GlobalModel, current_global_model
from surgical_aggregation.head import columns, from_columns, merge
from surgical_aggregation.refusal import Refusal, announce
from surgical_aggregation.weighting import (
    BODY_WEIGHTINGS,
    HEAD_WEIGHTINGS,
    WeightingError,
    body_weights,
    head_weights,
)


class SurgicalAggregator(Aggregator):
    """Average a round: body variables over all sites, each class's column over its holders.

    Runs on the server, under FLARE's ScatterAndGather. Takes results whose head is labelled (see
    `wire`) and gives the averaged variables; what no site sent this round is not in them, so the
    shareable generator must merge them into the last global model (`MergeIntoGlobalModel`).

    A result is refused whole, with site, round and reason, when it is late, a second one of the
    same site, or malformed (see `contribution.fault`). Sums run in site-name order: two runs with
    the same contributions agree bit for bit.

    Args:
        body_weighting: Strategy f: "mean" (default, the papers) or "samples".
        head_weighting: Strategy g: "mean" (default, the papers), "samples" or "positives".
        unsent: Regular expression of body variables that sites do not send, e.g. frozen batch
            normalisation; the global model keeps its own. Default None: all are sent.
        min_sites: Accepted results a round needs, else the run stops with the reasons. Default 1.

    Source:
        Kulkarni et al., "From Isolation to Collaboration", ML4H 2024, Section 3.
    """

    def __init__(
        self,
        body_weighting: str = "mean",
        head_weighting: str = "mean",
        unsent: str | None = None,
        min_sites: int = 1,
    ):
        super().__init__()
        if body_weighting not in BODY_WEIGHTINGS:
            raise WeightingError(
                f"body_weighting must be one of {BODY_WEIGHTINGS}; got {body_weighting!r}."
            )
        if head_weighting not in HEAD_WEIGHTINGS:
            raise WeightingError(
                f"head_weighting must be one of {HEAD_WEIGHTINGS}; got {head_weighting!r}."
            )
        self.body_weighting = body_weighting
        self.head_weighting = head_weighting
        self.unsent = unsent
        self.min_sites = min_sites
        self._lock = threading.Lock()
        self._accepted: dict[str, Contribution] = {}
        self._refused: list[Refusal] = []
        self._closed = False

    def accept(self, shareable: Shareable, fl_ctx: FLContext) -> bool:
        """Take one site's result into the round.

        Never raises: an exception here would end the round for every site.

        Returns:
            Whether the result will be averaged; a refusal has been announced.
        """
        site = peer_name(fl_ctx)
        current = fl_ctx.get_prop(AppConstants.CURRENT_ROUND)
        try:
            with self._lock:  # FLARE may call from several threads
                reason = self._take(site, shareable, current, current_global_model(fl_ctx))
        except Exception as error:
            reason = f"it could not be read ({type(error).__name__}: {error})"
        if reason is None:
            return True
        refusal = Refusal(site, current, reason)
        self._refused.append(refusal)
        announce(self, refusal, fl_ctx)
        return False

    def _take(
        self, site: str, shareable: Shareable, current: int, model: GlobalModel
    ) -> str | None:
        sent_in = shareable.get_cookie(AppConstants.CONTRIBUTION_ROUND)
        if sent_in != current:
            return f"it belongs to round {sent_in}, and round {current} is running"
        if self._closed:
            return f"round {current} has been averaged already"
        if site in self._accepted:
            return "the site has already given its result of this round"
        contribution = _read(shareable)
        reason = fault(contribution, Expected(model.body, model.features, self.unsent))
        if reason is None:
            try:
                body_weights(self.body_weighting, contribution)
                head_weights(self.head_weighting, contribution)
            except WeightingError as error:
                return str(error).rstrip(".")
            self._accepted[site] = contribution
        return reason

    def aggregate(self, fl_ctx: FLContext) -> Shareable:
        """Average what was accepted.

        Returns:
            Averaged variables as weights; meta says which sites' columns went into each class.

        Raises:
            WeightingError: Fewer than `min_sites` results were accepted. FLARE would otherwise go
                on with an empty round.
        """
        with self._lock:
            self._closed = True
            accepted = dict(sorted(self._accepted.items()))
            refused = list(self._refused)
        if len(accepted) < max(1, self.min_sites):
            reasons = "; ".join(f"{r.site}: {r.reason}" for r in refused)
            raise WeightingError(
                f"round {fl_ctx.get_prop(AppConstants.CURRENT_ROUND)} needs accepted results of "
                f"{self.min_sites} sites; got {len(accepted)} (accepted: "
                f"{', '.join(accepted) or 'none'}; refused: {reasons or 'none'}). Mend the sites, "
                "or lower min_clients."
            )
        contributions = list(accepted.values())
        features = current_global_model(fl_ctx).features
        body = mean_by_name(
            [c.body for c in contributions],
            [body_weights(self.body_weighting, c) for c in contributions],
        )
        head = merge(
            [from_columns(c.columns, features) for c in contributions],
            [head_weights(self.head_weighting, c) for c in contributions],
        )
        holders = {
            name: [site for site, c in accepted.items() if name in c.columns]
            for name in head.classes
        }
        data = wire.join(body, columns(head))
        return DXO(DataKind.WEIGHTS, data=data, meta={HOLDERS: holders}).to_shareable()

    def reset(self, fl_ctx: FLContext) -> None:
        """Forget the round."""
        with self._lock:
            self._accepted = {}
            self._refused = []
            self._closed = False


def _read(shareable: Shareable) -> Contribution:
    dxo = wire.weights(shareable)
    body, columns = wire.split(dxo.data)
    return Contribution(
        body,
        columns,
        samples=dxo.get_meta_prop(MetaKey.NUM_STEPS_CURRENT_ROUND),
        positives=dxo.get_meta_prop(wire.POSITIVES),
    )
