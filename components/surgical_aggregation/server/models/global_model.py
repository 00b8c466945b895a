"""The global model on the server, and merging a round's aggregate into it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from nvflare.apis.dxo import DXO, DataKind
from nvflare.apis.event_type import EventType
from nvflare.apis.fl_component import FLComponent
from nvflare.apis.fl_context import FLContext
from nvflare.apis.shareable import Shareable
from nvflare.app_common.abstract.model import ModelLearnable, ModelLearnableKey
from nvflare.app_common.abstract.shareable_generator import ShareableGenerator
from nvflare.app_common.app_constant import AppConstants

from surgical_aggregation.aggregation import average_of_rounds
from surgical_aggregation.aggregation.averaging import Array
from surgical_aggregation.aggregation.batch_norm_strategy import VariableKinds, kinds_of
from surgical_aggregation.aggregation.server_optimizer import check, step
from surgical_aggregation.aggregation.site_result import SiteResult
from surgical_aggregation.checkpoints.checkpoint import Checkpoint, digest
from surgical_aggregation.checkpoints.manifest import Manifest
from surgical_aggregation.server.access.class_filters import model_controllers
from surgical_aggregation.server.access.job_sites import versions_by_site
from surgical_aggregation.wire import headers
from surgical_aggregation.wire import variables as wire

_MOMENTS = "surgical.moments"


@dataclass(frozen=True)
class GlobalModel(Checkpoint):
    """The server's model. Manifest and moments never leave the server."""

    @cached_property
    def _body_and_columns(self) -> tuple[dict[str, Array], wire.Columns]:
        return wire.split(self.variables)

    @property
    def body(self) -> dict[str, Array]:
        """Body variables by path."""
        return self._body_and_columns[0]

    @property
    def columns(self) -> wire.Columns:
        """Class -> (kernel, bias)."""
        return self._body_and_columns[1]

    @property
    def features(self) -> int:
        """Number of features that a column weighs."""
        return int(self.manifest["head_features"])

    @property
    def is_personal(self) -> bool:
        """Whether every site has a personal model, so that this one is not used as it is."""
        return self.manifest.has_personal_body or not self.columns

    @property
    def kinds(self) -> VariableKinds:
        """Kinds of the body's variables."""
        return kinds_of(self.manifest, self.body)

    @classmethod
    def from_learnable(cls, learnable: ModelLearnable) -> GlobalModel:
        """Read the model from FLARE's container."""
        weights, manifest = learnable[ModelLearnableKey.WEIGHTS], learnable[ModelLearnableKey.META]
        return cls(weights, manifest, learnable.get(_MOMENTS, {}))

    def to_learnable(self) -> ModelLearnable:
        """Put the model into FLARE's container."""
        learnable = ModelLearnable()
        learnable[ModelLearnableKey.WEIGHTS] = self.variables
        learnable[ModelLearnableKey.META] = dict(self.manifest)
        learnable[_MOMENTS] = self.moments
        return learnable

    @classmethod
    def current(cls, fl_ctx: FLContext) -> GlobalModel:
        """The model that the running round started from, or made, once it is aggregated."""
        return cls.from_learnable(fl_ctx.get_prop(AppConstants.GLOBAL_MODEL))

    def set_current(self, fl_ctx: FLContext) -> None:
        """Make this model the current one for all server components."""
        learnable = self.to_learnable()
        fl_ctx.set_prop(AppConstants.GLOBAL_MODEL, learnable, private=True, sticky=True)

    @staticmethod
    def set_manifest(manifest: Manifest, fl_ctx: FLContext) -> None:
        """Replace the current model's manifest, in the container that FLARE's workflow saves."""
        fl_ctx.get_prop(AppConstants.GLOBAL_MODEL)[ModelLearnableKey.META] = dict(manifest)


def needs_federated_training(component: FLComponent, what: str, fl_ctx: FLContext) -> None:
    """End the run if a component has a setting that FLARE's FedAvg does not support."""
    for workflow in model_controllers(fl_ctx):
        component.system_panic(
            f"{type(component).__name__}: {type(workflow).__name__} does not support {what}. "
            "Use FederatedTraining as the workflow, or leave it out.",
            fl_ctx,
        )


@dataclass(eq=False)
class MergeIntoGlobalModel(ShareableGenerator):
    """Merge a round's aggregate into the last global model.

    Runs on the server. FLARE's stock generator replaces the whole model; here a class that no site
    trained in the round keeps its column, and a new class is added.

    If a value of the model or of the optimizer's moments would not be finite, the round is dropped:
    both stay unchanged and the run continues with the next round. Log and record have the reason
    and the largest values received.

    Args:
        optimizer: "none" (default): the average becomes the model. "fedavgm" or "fedadam": the
            server takes a step towards it, see `aggregation.server_optimizer`.
        learning_rate: Of the optimizer, 0 or more. Default 0.0: the optimizer's own, 1.0 for
            fedavgm and 0.003 for fedadam, which moves a variable by about this much per round.
        momentum: Of the optimizer, in [0, 1). Default 0.9.
        average_decay: Decay of the average over late rounds, in [0, 1); the average is a candidate
            for the best model, see `aggregation.average_of_rounds`. Default 0.0: no average.

    Raises:
        ValueError: A setting is out of range.
    """

    optimizer: str = "none"
    learning_rate: float = 0.0
    momentum: float = 0.9
    average_decay: float = 0.0

    def __post_init__(self) -> None:
        super().__init__()
        check(self.optimizer, self.learning_rate, self.momentum)
        average_of_rounds.check(self.average_decay)

    def handle_event(self, event_type: str, fl_ctx: FLContext) -> None:
        """End a run under FLARE's FedAvg, which would ignore these settings."""
        if event_type == EventType.START_RUN and self.optimizer != "none":
            needs_federated_training(self, f"optimizer {self.optimizer!r}", fl_ctx)
        if event_type == EventType.START_RUN and self.average_decay:
            needs_federated_training(self, f"average_decay {self.average_decay}", fl_ctx)

    def learnable_to_shareable(self, model: ModelLearnable, fl_ctx: FLContext) -> Shareable:
        """The whole model without its manifest; `SelectHead` selects each site's columns."""
        sent = GlobalModel.from_learnable(model)
        shareable = DXO(DataKind.WEIGHTS, data=sent.variables).to_shareable()
        if fl_ctx.get_prop(AppConstants.CURRENT_ROUND) == fl_ctx.get_prop(AppConstants.START_ROUND):
            shareable.set_header(headers.INITIAL_BODY, digest(sent.body))
        if earlier := sent.manifest.continued:
            shareable.set_header(headers.CONTINUES, earlier)
        return shareable

    def shareable_to_learnable(self, shareable: Shareable, fl_ctx: FLContext) -> ModelLearnable:
        """The last global model, updated with the round's averages."""
        return self.merged(wire.weights(shareable), fl_ctx).to_learnable()

    def merged(self, aggregate: DXO, fl_ctx: FLContext) -> GlobalModel:
        """The current global model, updated with an aggregate of `SurgicalAggregator`."""
        last = GlobalModel.current(fl_ctx)
        stepped, moments = step(
            self.optimizer, last.variables, aggregate.data, last.moments,
            statistics=last.kinds.statistics, learning_rate=self.learning_rate,
            momentum=self.momentum,
        )  # fmt: skip
        round_ = fl_ctx.get_prop(AppConstants.CURRENT_ROUND)
        accepted = fl_ctx.get_prop(headers.ACCEPTED) or {}
        moments |= average_of_rounds.average(last.moments, stepped, stepped, self.average_decay)
        made = {**stepped, **moments}
        if lost := [name for name, value in made.items() if not np.isfinite(value).all()]:
            drop = {"round": round_, "reason": _reason(lost, accepted)}
            text = f"round {round_} is dropped: {drop['reason']}"
            self.log_error(fl_ctx, text, fire_event=False)
            fl_ctx.set_prop(headers.DROP, drop, private=True, sticky=False)
            self.fire_event(headers.ROUND_DROPPED, fl_ctx)
            return replace(last, manifest=last.manifest.with_facts(round=round_ + 1))
        manifest = last.manifest.with_round(round_, accepted, versions_by_site(fl_ctx))
        return GlobalModel({**last.variables, **stepped}, manifest, moments)


def _reason(lost: list[str], accepted: Mapping[str, SiteResult]) -> str:
    """Why a round is dropped, with the largest value of each site."""
    sizes = []
    for site, result in accepted.items():
        sent = wire.join(result.body, result.columns)
        size, name = max((float(np.abs(v).max(initial=0)), name) for name, v in sent.items())
        sizes.append((size, f"{site} {size:.2g} in {name!r}"))
    came = "; ".join(text for _, text in sorted(sizes, reverse=True))
    return (
        f"{len(lost)} variables would become NaN or infinite, e.g. {lost[0]!r}; the model stays as "
        f"it was. Largest values received: {came or 'unknown'}. Check the training of the first "
        "site, or lower the learning rate of the server's optimizer"
    )
