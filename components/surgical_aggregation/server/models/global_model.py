"""The global model on the server, and how a round's aggregate goes into it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from nvflare.apis.dxo import DXO, DataKind
from nvflare.apis.event_type import EventType
from nvflare.apis.fl_context import FLContext
from nvflare.apis.shareable import Shareable
from nvflare.app_common.abstract.model import (
    ModelLearnable,
    ModelLearnableKey,
    make_model_learnable,
)
from nvflare.app_common.abstract.shareable_generator import ShareableGenerator
from nvflare.app_common.app_constant import AppConstants

from surgical_aggregation.aggregation import moments as server_moments
from surgical_aggregation.aggregation.averaging import Array, Variables
from surgical_aggregation.aggregation.site_result import SiteResult
from surgical_aggregation.aggregation.strategy import VariableKinds, kinds_of
from surgical_aggregation.checkpoints.checkpoint import Checkpoint, digest
from surgical_aggregation.checkpoints.manifest import Manifest
from surgical_aggregation.server.access.controller_limits import needs_federated_training
from surgical_aggregation.server.access.declared_classes import versions_by_site
from surgical_aggregation.server.access.refusal_events import drop_round
from surgical_aggregation.wire import headers
from surgical_aggregation.wire import variables as wire

_MOMENTS = "surgical.moments"


@dataclass(frozen=True)
class GlobalModel(Checkpoint):
    """The server's model. Manifest and moments never leave the server."""

    @cached_property
    def _parts(self) -> tuple[dict[str, Array], wire.Columns]:
        return wire.split(self.variables)

    @property
    def body(self) -> dict[str, Array]:
        """Body variables by path."""
        return self._parts[0]

    @property
    def columns(self) -> wire.Columns:
        """Class -> (kernel, bias)."""
        return self._parts[1]

    @property
    def features(self) -> int:
        """Number of features that a column weighs."""
        return int(self.manifest["head_features"])

    @property
    def is_personal(self) -> bool:
        """Whether every site has a model of its own, so that this one is none that is used."""
        return self.manifest.has_personal_body or not self.columns

    @property
    def kinds(self) -> VariableKinds:
        """Kinds of the body's variables."""
        return kinds_of(self.manifest, self.body)


def from_learnable(learnable: ModelLearnable) -> GlobalModel:
    """The model in FLARE's container."""
    weights, manifest = learnable[ModelLearnableKey.WEIGHTS], learnable[ModelLearnableKey.META]
    return GlobalModel(weights, manifest, learnable.get(_MOMENTS, {}))


def to_learnable(model: GlobalModel) -> ModelLearnable:
    """The model in FLARE's container."""
    learnable = make_model_learnable(model.variables, dict(model.manifest))
    learnable[_MOMENTS] = model.moments
    return learnable


def current_global_model(fl_ctx: FLContext) -> GlobalModel:
    """The model that the running round started from (after aggregation: the one it made)."""
    return from_learnable(fl_ctx.get_prop(AppConstants.GLOBAL_MODEL))


def set_global_model(model: GlobalModel, fl_ctx: FLContext) -> None:
    """Make a model the one that all parts of the server look at."""
    fl_ctx.set_prop(AppConstants.GLOBAL_MODEL, to_learnable(model), private=True, sticky=True)


def set_manifest(manifest: Manifest, fl_ctx: FLContext) -> None:
    """Give the present model another manifest, in the container that FLARE's workflow saves."""
    fl_ctx.get_prop(AppConstants.GLOBAL_MODEL)[ModelLearnableKey.META] = dict(manifest)


@dataclass(eq=False)
class MergeIntoGlobalModel(ShareableGenerator):
    """Merge a round's aggregate into the last global model.

    Runs on the server. A class that no site trained in the round keeps its column, a new one is
    added, and none ever vanishes; FLARE's stock generator replaces the whole model.

    Where a value of the model or of the optimizer's moments would not be finite, the round is
    dropped: both stay as they were, the run goes on with the next round, and log and record say so,
    with the largest values that came.

    Args:
        optimizer: "none" (default): what was averaged becomes the model. "fedavgm" or "fedadam":
            the server takes a step towards it, see `aggregation.moments`.
        learning_rate: Of the optimizer. Default 0.0: its own, 1.0 for fedavgm, and 0.003 for
            fedadam, which moves a variable by about this much a round.
        momentum: Of the optimizer. Default 0.9.
        average_decay: Of the average over late rounds, which is a candidate for the best model; see
            `aggregation.moments`. Default 0.0: none is kept.
    """

    optimizer: str = "none"
    learning_rate: float = 0.0
    momentum: float = 0.9
    average_decay: float = 0.0

    def __post_init__(self) -> None:
        super().__init__()
        server_moments.check(self.optimizer, self.learning_rate, self.momentum, self.average_decay)

    def handle_event(self, event_type: str, fl_ctx: FLContext) -> None:
        """Refuse what FLARE's FedAvg cannot have: it uses no shareable generator."""
        if event_type == EventType.START_RUN and self.optimizer != "none":
            needs_federated_training(self, f"optimizer {self.optimizer!r}", fl_ctx)
        if event_type == EventType.START_RUN and self.average_decay:
            needs_federated_training(self, f"average_decay {self.average_decay}", fl_ctx)

    def learnable_to_shareable(self, model: ModelLearnable, fl_ctx: FLContext) -> Shareable:
        """The whole model without its manifest, to be cut down for each site by `SelectHead`."""
        sent = from_learnable(model)
        shareable = DXO(DataKind.WEIGHTS, data=sent.variables).to_shareable()
        if fl_ctx.get_prop(AppConstants.CURRENT_ROUND) == fl_ctx.get_prop(AppConstants.START_ROUND):
            shareable.set_header(headers.INITIAL_BODY, digest(sent.body))
        if earlier := sent.manifest.continued:
            shareable.set_header(headers.CONTINUES, earlier)
        return shareable

    def shareable_to_learnable(self, shareable: Shareable, fl_ctx: FLContext) -> ModelLearnable:
        """The last global model, updated with the round's averages."""
        return to_learnable(self.merged(wire.weights(shareable), fl_ctx))

    def merged(self, aggregate: DXO, fl_ctx: FLContext) -> GlobalModel:
        """The present global model, updated with what `SurgicalAggregator` has averaged."""
        last = current_global_model(fl_ctx)
        stepped, moments = server_moments.step(
            self.optimizer, last.variables, aggregate.data, last.moments,
            statistics=last.kinds.statistics, learning_rate=self.learning_rate,
            momentum=self.momentum,
        )  # fmt: skip
        round_ = fl_ctx.get_prop(AppConstants.CURRENT_ROUND)
        accepted = fl_ctx.get_prop(headers.ACCEPTED) or {}
        moments |= server_moments.average(last.moments, stepped, stepped, self.average_decay)
        if lost := _not_finite({**stepped, **moments}):
            drop_round(self, round_, _reason(lost, accepted), fl_ctx)
            return replace(last, manifest=last.manifest.with_facts(round=round_ + 1))
        told = versions_by_site(fl_ctx)
        manifest = last.manifest.with_round(
            round_,
            aggregate.get_meta_prop(headers.TRAINED_BY, {}),
            aggregate.get_meta_prop(headers.LACKING, {}),
            {site: dict(told[site]) for site in accepted if site in told},
            accepted,
        )
        return GlobalModel({**last.variables, **stepped}, manifest, moments)


def _not_finite(variables: Variables) -> list[str]:
    return [name for name, value in variables.items() if not np.isfinite(value).all()]


def _reason(lost: list[str], accepted: Mapping[str, SiteResult]) -> str:
    """Why a round is dropped, and at which sites to look."""
    sizes = []
    for site, result in accepted.items():
        sent = wire.join(result.body, result.columns)
        size, name = max((float(np.abs(v).max(initial=0)), name) for name, v in sent.items())
        sizes.append((size, f"{site} {size:.2g} in {name!r}"))
    came = "; ".join(text for _, text in sorted(sizes, reverse=True))
    return (
        f"{len(lost)} variables would get values that are NaN or infinite, e.g. {lost[0]!r}; the "
        f"model stays as it was. The largest values that came: {came or 'not known'}. Look at the "
        "training of the first site, or lower the learning rate of the server's optimizer"
    )
