"""The workflow after training: sites refit a model's columns on its body."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from nvflare.apis.controller_spec import ClientTask, Task
from nvflare.apis.dxo import DXO, DataKind, from_shareable
from nvflare.apis.fl_constant import FLContextKey
from nvflare.apis.fl_context import FLContext
from nvflare.apis.shareable import Shareable
from nvflare.apis.signal import Signal
from nvflare.app_common.abstract.aggregator import Aggregator
from nvflare.app_common.app_constant import AppConstants

from surgical_aggregation.aggregation.site_result import SiteResult
from surgical_aggregation.checkpoints.checkpoint import load
from surgical_aggregation.server.access.class_filters import TRAINED
from surgical_aggregation.server.models.candidates import refit_of
from surgical_aggregation.server.models.evaluated_model import model_headers
from surgical_aggregation.server.models.global_model import GlobalModel
from surgical_aggregation.server.models.model_files import checkpoint_folders
from surgical_aggregation.server.workflows.collecting_controller import AskingController
from surgical_aggregation.wire import headers, results

MODELS = (headers.NONE, "best", "last")
"""Whose columns can be refitted, as their files are called."""


@dataclass(eq=False)
class ModelRefit(AskingController):
    """Have every site refit its columns on the body of a model, and average them.

    Runs on the server. A column lags behind a body that moves in every round; here it has the last
    word. After few rounds columns lag so far that the validation loss does not show that the last
    body is the best: then "last" is the better choice.

    A site gets the model as `SelectHead` cuts it, and sends its columns alone (see `KerasExecutor`,
    task "refit"). They are averaged as in a round, over the sites that label a class. What comes
    out is a candidate for the best model, see `candidates`: the next workflow has it measured. A
    class that no site sent keeps its column.

    Args:
        model: Whose columns: "best", "last", or "none" (default): nothing is done.
        min_clients: Accepted results that are needed. Default 0: all of the job.
        wait_seconds: Seconds to wait for the others then. Default 600.
        aggregator_id: Id of the aggregator, which takes `columns_only`. Default
            "column_aggregator".
    """

    guards = TRAINED

    model: str = headers.NONE
    min_clients: int = 0
    wait_seconds: int = 600
    aggregator_id: str = "column_aggregator"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.model not in MODELS:
            raise ValueError(f"model must be one of {MODELS}; got {self.model!r}.")

    def read(self, shareable: Shareable) -> SiteResult:
        """What a site has trained."""
        return results.trained(shareable)

    def control_flow(self, abort_signal: Signal, fl_ctx: FLContext) -> None:
        """Send the model, average the columns that come, and make the candidate."""
        if self.model == headers.NONE:
            return
        path = checkpoint_folders(fl_ctx)[0] / f"{self.model}.npz"
        if not path.is_file():
            self.log_warning(fl_ctx, f"there is no {self.model} model to refit")
            return
        checkpoint = load(path)
        if checkpoint.manifest.get(headers.CANDIDATE) == headers.REFIT:
            self.log_info(fl_ctx, f"the columns of the {self.model} model were refitted before")
            return
        model = GlobalModel(checkpoint.variables, checkpoint.manifest)
        aggregator = fl_ctx.get_engine().get_component(self.aggregator_id)
        if why := _objection(model, aggregator):
            self.system_panic(f"columns cannot be refitted: {why}", fl_ctx)
            return
        model.set_current(fl_ctx)
        aggregator.reset(fl_ctx)
        data = DXO(DataKind.WEIGHTS, data=model.variables).to_shareable()
        for name, value in model_headers(model.manifest).items():
            data.set_header(name, value)
        round_ = fl_ctx.get_prop(AppConstants.CURRENT_ROUND)
        data.add_cookie(AppConstants.CONTRIBUTION_ROUND, round_)
        task = Task("refit", data, result_received_cb=partial(_take, aggregator))
        self.ask(task, fl_ctx)
        if abort_signal.triggered or fl_ctx.get_prop(FLContextKey.FATAL_SYSTEM_ERROR):
            return
        columns = from_shareable(aggregator.aggregate(fl_ctx)).data
        refit_of(model, columns).set_current(fl_ctx)
        of = f"the model of round {model.manifest['round']}"
        self.log_info(fl_ctx, f"the columns of {of} are refitted, and are measured next")

    def stop_controller(self, fl_ctx: FLContext) -> None:
        """Nothing is left to stop."""


def _objection(model: GlobalModel, aggregator: object) -> str | None:
    if not isinstance(aggregator, Aggregator):
        return f"an Aggregator is needed; got {type(aggregator).__name__}. Check aggregator_id."
    if model.is_personal:
        return (
            "it needs one body for all sites, and here every site has a model of its own (strategy "
            f"{model.manifest['strategy']!r}, or a personal head). Take refit_model=none."
        )
    return None


def _take(aggregator: Aggregator, client_task: ClientTask, fl_ctx: FLContext) -> None:
    accepted = aggregator.accept(client_task.result, fl_ctx)
    fl_ctx.set_prop(AppConstants.AGGREGATION_ACCEPTED, accepted, private=True, sticky=False)
