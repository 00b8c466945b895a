"""Candidates for the best model that are made after training from the rounds' models.

    average   the mean over the late rounds, see `aggregation.average_of_rounds`
    refit     the best model so far or the last one, with refitted columns, see `ModelRefit`

A candidate has the round of the model that it was made from. It is the context's global model while
the sites validate it, and is written to a file in the folder of last.npz and best.npz.
"""

from __future__ import annotations

from dataclasses import replace

from nvflare.apis.fl_context import FLContext

from surgical_aggregation.aggregation.average_of_rounds import averaged
from surgical_aggregation.aggregation.averaging import Variables
from surgical_aggregation.aggregation.site_result import SiteResult
from surgical_aggregation.checkpoints.checkpoint import Checkpoint
from surgical_aggregation.server.models.evaluated_model import CheckpointLocator
from surgical_aggregation.server.models.global_model import GlobalModel
from surgical_aggregation.wire.headers import AVERAGE, CANDIDATE, REFIT

CANDIDATES = (AVERAGE, REFIT)


def average_of(model: GlobalModel) -> GlobalModel | None:
    """The average over the late rounds, from the last model; None if no average was kept."""
    means = averaged(model.variables, model.moments)
    return None if means is None else _candidate(AVERAGE, model, means)


def refit_of(model: GlobalModel, columns: Variables, sent: dict[str, SiteResult]) -> GlobalModel:
    """The model with refitted columns, given by their names on the wire.

    Columns of classes that the model does not have are ignored: they were not trained in it. The
    sites whose results are in the columns are added to those that trained the class.

    Args:
        model: The model.
        columns: Averages of the refitted columns.
        sent: Site -> its result, which was averaged.
    """
    own = {name: value for name, value in columns.items() if name in model.variables}
    made = model.manifest.with_round(model.manifest.round, sent, {})["classes"]
    classes = {  # no round was made
        name: {**made[name], "rounds": of.get("rounds", []), "last_round": of.get("last_round")}
        for name, of in model.manifest.get("classes", {}).items()
    }
    named = replace(model, manifest=model.manifest.with_facts(classes=classes))
    return _candidate(REFIT, named, {**model.variables, **own})


def _candidate(made: str, model: GlobalModel, variables: Variables) -> GlobalModel:
    manifest = model.manifest.without("best", "validation").with_facts(**{CANDIDATE: made})
    return GlobalModel(dict(variables), manifest)


class CandidateLocator(CheckpointLocator):
    """Give FLARE's GlobalModelEval a candidate, if the run has made one.

    Runs on the server, after training; see `CheckpointLocator`.

    Args:
        model: "average" (default), made here, or "refit".
    """

    models = CANDIDATES

    def __init__(self, model: str = AVERAGE):
        super().__init__(model)

    def get_model_names(self, fl_ctx: FLContext) -> list[str]:
        """The candidate's name, or an empty list if the run has not made it."""
        if self.model == AVERAGE and (average := average_of(GlobalModel.current(fl_ctx))):
            average.set_current(fl_ctx)
        made = GlobalModel.current(fl_ctx).manifest.get(CANDIDATE)
        return [self.model] if made == self.model else []

    def checkpoint(self, fl_ctx: FLContext) -> Checkpoint:
        """The candidate."""
        return GlobalModel.current(fl_ctx)
