"""Models made after training from those of the rounds: candidates for the best one.

    average   the mean over the late rounds, see `aggregation.moments`
    refit     the best model so far or the last, its columns refitted, see `ModelRefit`

A candidate has the round of the model that it was made from. It is the context's global model while
the sites measure it, and a file beside last.npz and best.npz.
"""

from __future__ import annotations

from nvflare.apis.fl_context import FLContext

from surgical_aggregation.aggregation.averaging import Variables
from surgical_aggregation.aggregation.moments import averaged
from surgical_aggregation.checkpoints.checkpoint import Checkpoint
from surgical_aggregation.server.models.evaluated_model import CheckpointLocator
from surgical_aggregation.server.models.global_model import GlobalModel
from surgical_aggregation.wire.headers import AVERAGE, CANDIDATE, REFIT

CANDIDATES = (AVERAGE, REFIT)


def average_of(model: GlobalModel) -> GlobalModel | None:
    """The average over the late rounds, by the model of the last one; None where none was kept."""
    means = averaged(model.variables, model.moments)
    return None if means is None else _candidate(AVERAGE, model, means)


def refit_of(model: GlobalModel, columns: Variables) -> GlobalModel:
    """A model with refitted columns, given by their names on the wire.

    Classes that the model does not have stay out: nobody has trained them in it.
    """
    own = {name: value for name, value in columns.items() if name in model.variables}
    return _candidate(REFIT, model, {**model.variables, **own})


def _candidate(made: str, model: GlobalModel, variables: Variables) -> GlobalModel:
    manifest = model.manifest.without("best", "validation").with_facts(**{CANDIDATE: made})
    return GlobalModel(dict(variables), manifest)


class CandidateLocator(CheckpointLocator):
    """Give FLARE's GlobalModelEval a candidate, where the run has made one.

    Runs on the server, after training; see `CheckpointLocator`.

    Args:
        model: "average" (default), made here, or "refit".
    """

    models = CANDIDATES

    def __init__(self, model: str = AVERAGE):
        super().__init__(model)

    def get_model_names(self, fl_ctx: FLContext) -> list[str]:
        """The candidate's name, or nothing where the run has not made it."""
        if self.model == AVERAGE and (average := average_of(GlobalModel.current(fl_ctx))):
            average.set_current(fl_ctx)
        made = GlobalModel.current(fl_ctx).manifest.get(CANDIDATE)
        return [self.model] if made == self.model else []

    def checkpoint(self, fl_ctx: FLContext) -> Checkpoint:
        """The candidate."""
        return GlobalModel.current(fl_ctx)
