"""The workflow after training: sites refit a model's columns on its frozen body."""

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
"""Models whose columns can be refitted, by the names of their files."""


@dataclass(eq=False)
class ModelRefit(AskingController):
    """Refit the columns of a model on its frozen body at every site, and average them.

    Runs on the server. During training the columns lag behind the body, which changes in every
    round. After few rounds they lag so far that the validation loss does not show that the last
    body is the best one: refit "last" then.

    A site receives the model from `SelectHead` and sends only its columns (see `KerasExecutor`,
    task "refit"). Each column is averaged over the sites that label its class, as in a round; a
    class that no site sent keeps its column. The result is a candidate for the best model (see
    `candidates`), which the next workflow validates.

    Args:
        model: Which model to refit: "best", "last", or "none" (default): do nothing.
        min_clients: Number of accepted results needed. Default 0: all sites of the job.
        wait_seconds: Grace period in seconds for the other sites. Default 600.
        aggregator_id: Id of the aggregator, one with `columns_only`. Default "column_aggregator".

    Raises:
        ValueError: `model` is none of these.
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
        """Read the refitted columns."""
        return results.trained(shareable)

    def control_flow(self, abort_signal: Signal, fl_ctx: FLContext) -> None:
        """Send the model, average the columns received, and make the candidate."""
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
        task = Task("refit", data, result_received_cb=partial(_accept, aggregator))
        self.ask(task, fl_ctx)
        if abort_signal.triggered or fl_ctx.get_prop(FLContextKey.FATAL_SYSTEM_ERROR):
            return
        columns = from_shareable(aggregator.aggregate(fl_ctx)).data
        sent = fl_ctx.get_prop(headers.ACCEPTED) or {}
        refit_of(model, columns, sent).set_current(fl_ctx)
        name = f"the model of round {model.manifest['round']}"
        self.log_info(fl_ctx, f"the columns of {name} are refitted; validation is next")

    def stop_controller(self, fl_ctx: FLContext) -> None:
        """Nothing to stop."""


def _objection(model: GlobalModel, aggregator: object) -> str | None:
    if not isinstance(aggregator, Aggregator):
        return f"an Aggregator is needed; got {type(aggregator).__name__}. Check aggregator_id."
    if model.is_personal:
        return (
            "all sites must share one body and head; here each has a personal model (strategy "
            f"{model.manifest['strategy']!r}, or a personal head). Set model to 'none'."
        )
    return None


def _accept(aggregator: Aggregator, client_task: ClientTask, fl_ctx: FLContext) -> None:
    accepted = aggregator.accept(client_task.result, fl_ctx)
    fl_ctx.set_prop(AppConstants.AGGREGATION_ACCEPTED, accepted, private=True, sticky=False)
