"""The training workflow: FLARE's ScatterAndGather with resuming and early stopping."""

from __future__ import annotations

from dataclasses import dataclass

from nvflare.apis.controller_spec import ClientTask
from nvflare.apis.dxo import MetaKey, from_shareable
from nvflare.apis.fl_constant import FLMetaKey
from nvflare.apis.fl_context import FLContext
from nvflare.apis.shareable import Shareable
from nvflare.app_common.abstract.model import ModelLearnable
from nvflare.app_common.app_constant import AppConstants
from nvflare.app_common.app_event_type import AppEventType
from nvflare.app_common.workflows.scatter_and_gather import ScatterAndGather
from nvflare.fuel.utils.validation_utils import check_non_negative_int

from surgical_aggregation.aggregation import metrics
from surgical_aggregation.aggregation.early_stopping import should_stop
from surgical_aggregation.aggregation.site_result import SiteResult
from surgical_aggregation.server.access.class_filters import TRAINED
from surgical_aggregation.server.access.job_sites import declared_classes
from surgical_aggregation.server.models.global_model import GlobalModel
from surgical_aggregation.server.workflows.collecting_controller import CollectingController
from surgical_aggregation.wire import flare_internals, headers, results


@dataclass(eq=False)
class FederatedTraining(CollectingController, ScatterAndGather):
    """ScatterAndGather that resumes at a checkpoint's round and stops early.

    Runs on the server. Results are collected by `CollectingController`.

    Training stops after `patience` rounds without a better model. The model of round r is the one
    that round r starts from; sites validate it in round r. The model that the last round makes is
    saved, then validated by the next workflow; it can still be selected as best.

    The count of rounds since the best model continues across resumed jobs. It leaves out rounds
    whose models could not be compared with the best one (`not_compared` in the manifest), and does
    not start before there is a best model.

    Args:
        num_rounds: Number of rounds of this job, in addition to those of a resumed run. 0: the
            planned rounds that the resumed run has not made. Default 5.
        patience: Rounds without a better model after which to stop. Default 0: never.
        min_clients: Number of accepted results that a round needs. Default 0: all sites of the
            job, including those where FLARE has not started it.
        wait_time_after_min_received: Grace period in seconds for the other sites. Default 10.
        train_timeout: Seconds that a site may train. Default 0: no limit.
        aggregator_id: Id of the aggregator. Default "aggregator".
        persistor_id: Id of the persistor. Default "persistor".
        shareable_generator_id: Id of the shareable generator. Default "shareable_generator".
        train_task_name: Name of the task. Default "train".

    Source:
        Early stopping on the mean over sites of the validation loss, after 25 rounds: Kulkarni et
        al., arXiv:2301.06683, version 1.
    """

    guards = TRAINED

    num_rounds: int = 5
    patience: int = 0
    min_clients: int = 0
    wait_time_after_min_received: int = 10
    train_timeout: int = 0
    aggregator_id: str = "aggregator"
    persistor_id: str = "persistor"
    shareable_generator_id: str = "shareable_generator"
    train_task_name: str = "train"

    def __post_init__(self) -> None:
        arguments = {name: value for name, value in vars(self).items() if name != "patience"}
        arguments["min_clients"] = self.min_clients or 1  # FLARE refuses 0, see `start_controller`
        super().__init__(**arguments)
        check_non_negative_int("patience", self.patience)
        check_non_negative_int("min_clients", self.min_clients)

    def current_round(self, fl_ctx: FLContext) -> int | None:
        """The round that is running."""
        return fl_ctx.get_prop(AppConstants.CURRENT_ROUND)

    def read(self, shareable: Shareable) -> SiteResult:
        """Read a training result."""
        return results.trained(shareable)

    def fault(self, result: SiteResult, fl_ctx: FLContext) -> str | None:
        """Why the metrics that came with a trained model must be refused; None: they are valid."""
        unknown = None if getattr(self.aggregator, "personal_head", False) else ()
        return metrics.fault(result.metrics, declared_classes(fl_ctx) or unknown)

    def prepare(self, client_task: ClientTask, result: SiteResult, fl_ctx: FLContext) -> None:
        """Set the result's round, site name and metrics (as plain numbers)."""
        shareable = client_task.result
        dxo = from_shareable(shareable)
        dxo.set_meta_prop(MetaKey.INITIAL_METRICS, dict(result.metrics))
        dxo.update_shareable(shareable)
        shareable.set_header(FLMetaKey.SITE_NAME, client_task.client.name)  # replaces one in meta
        shareable.set_header(AppConstants.CURRENT_ROUND, self.current_round(fl_ctx))

    def start_controller(self, fl_ctx: FLContext) -> None:
        """Load the model, and set the first round and the number of rounds."""
        flare_internals.set_min_results(self, self.min_clients)
        super().start_controller(fl_ctx)
        model = fl_ctx.get_prop(AppConstants.GLOBAL_MODEL)
        if not isinstance(model, ModelLearnable) or model.is_empty():
            return  # FLARE has ended the run, with the reason
        manifest = GlobalModel.from_learnable(model).manifest
        first, number = manifest.round, self.num_rounds
        if number == 0 and "planned_rounds" not in manifest:
            self.system_panic(
                "num_rounds must be above 0, unless a run is resumed whose manifest has its "
                "planned rounds; got 0 and a start model without them. Set num_rounds.",
                fl_ctx,
            )
        elif number == 0:
            number = manifest.missing_rounds
            if number == 0:  # no round to make: the model becomes this job's unchanged
                self.persistor.save(model, fl_ctx)
        flare_internals.plan_rounds(self, first, number)
        fl_ctx.set_prop(AppConstants.START_ROUND, first, private=True, sticky=True)
        GlobalModel.set_manifest(manifest.with_facts(planned_rounds=first + number), fl_ctx)

    def handle_event(self, event_type: str, fl_ctx: FLContext) -> None:
        """Decide whether a round is the last, after its model is made and before it is saved."""
        super().handle_event(event_type, fl_ctx)
        if event_type == AppEventType.AFTER_SHAREABLE_TO_LEARNABLE:
            self._consider_stopping(fl_ctx)

    def _consider_stopping(self, fl_ctx: FLContext) -> None:
        round_ = fl_ctx.get_prop(AppConstants.CURRENT_ROUND)
        best = fl_ctx.get_prop(headers.BEST_ROUND)
        manifest = GlobalModel.current(fl_ctx).manifest
        lost = manifest.get("not_compared", 0)
        stops = should_stop(round_, best, self.patience, not_compared=lost)
        if not stops or round_ + 1 >= manifest["planned_rounds"]:
            return
        first = fl_ctx.get_prop(AppConstants.START_ROUND)
        flare_internals.plan_rounds(self, first, round_ + 1 - first)  # this one is the last
        GlobalModel.set_manifest(manifest.with_facts(planned_rounds=round_ + 1), fl_ctx)
        why = f"no later model is better than that of round {best} (patience {self.patience})"
        self.log_info(fl_ctx, f"round {round_} is the last: {why}")
        stopped = {"round": round_, "best_round": best, "patience": self.patience}
        self.fire_event_with_data(headers.TRAINING_STOPPED, fl_ctx, headers.STOPPED, stopped)
