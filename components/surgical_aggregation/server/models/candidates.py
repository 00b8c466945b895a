"""Models made after training from those of the rounds: candidates for the best one.

    average   the mean over the late rounds, see `weight_average`
    refit     the best model so far or the last, its columns fitted anew, see `ModelRefit`

A candidate has the round of the model that it was made from. It is the context's global model while
the sites measure it, and a file beside last.npz and best.npz.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nvflare.apis.fl_context import FLContext
from nvflare.app_common.app_constant import AppConstants

from surgical_aggregation.aggregation import weight_average
from surgical_aggregation.aggregation.averaging import Variables
from surgical_aggregation.checkpoints.checkpoint import Checkpoint
from surgical_aggregation.server.models.evaluated_model import OneModelLocator, continues_header
from surgical_aggregation.server.models.global_model import (
    GlobalModel,
    current_global_model,
    to_learnable,
)
from surgical_aggregation.wire.headers import AVERAGE, CANDIDATE, REFIT

CANDIDATES = (AVERAGE, REFIT)


def average_of(model: GlobalModel) -> GlobalModel | None:
    """The average over the late rounds, by the model of the last one; None where none was kept."""
    averaged = weight_average.averaged(model.variables, model.moments)
    return None if averaged is None else _candidate(AVERAGE, model, averaged)


def refit_of(model: GlobalModel, columns: Variables) -> GlobalModel:
    """A model with columns that were fitted anew, given by their names on the wire.

    Classes that the model does not have stay out: nobody has trained them in it.
    """
    own = {name: value for name, value in columns.items() if name in model.variables}
    return _candidate(REFIT, model, {**model.variables, **own})


def _candidate(made: str, model: GlobalModel, variables: Variables) -> GlobalModel:
    manifest = {k: v for k, v in model.manifest.items() if k not in ("best", "validation")}
    return GlobalModel(dict(variables), {**manifest, CANDIDATE: made})


def set_global_model(model: GlobalModel, fl_ctx: FLContext) -> None:
    """Make a model the one that selector and persistor look at."""
    fl_ctx.set_prop(AppConstants.GLOBAL_MODEL, to_learnable(model), private=True, sticky=True)


class CandidateLocator(OneModelLocator):
    """Give FLARE's GlobalModelEval a candidate, where the run has made one.

    Runs on the server, after training.

    Args:
        model: "average" (default), made here, or "refit".
    """

    def __init__(self, model: str = AVERAGE):
        super().__init__(model)
        if model not in CANDIDATES:
            raise ValueError(f"model must be one of {CANDIDATES}; got {model!r}.")

    def get_model_names(self, fl_ctx: FLContext) -> list[str]:
        """The candidate's name, or nothing where the run has not made it."""
        if self.model == AVERAGE and (average := average_of(current_global_model(fl_ctx))):
            set_global_model(average, fl_ctx)
        made = current_global_model(fl_ctx).manifest.get(CANDIDATE)
        return [self.model] if made == self.model else []

    def headers(self, manifest: Mapping[str, Any]) -> dict[str, Any]:
        """Also what the run continues."""
        return super().headers(manifest) | continues_header(manifest)

    def checkpoint(self, fl_ctx: FLContext) -> Checkpoint:
        """The candidate."""
        return current_global_model(fl_ctx)
