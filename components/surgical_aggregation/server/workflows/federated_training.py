"""The training workflow: FLARE's ScatterAndGather, continuing from a checkpoint, stopping early."""

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
from surgical_aggregation.aggregation.site_result import SiteResult
from surgical_aggregation.server.access.class_filters import TRAINED
from surgical_aggregation.server.access.job_sites import declared_classes
from surgical_aggregation.server.models.global_model import GlobalModel
from surgical_aggregation.server.workflows.collecting_controller import CollectingController
from surgical_aggregation.wire import flare_internals, headers, results


@dataclass(eq=False)
class FederatedTraining(CollectingController, ScatterAndGather):
    """ScatterAndGather with early stopping, and with the checkpoint's round as its first.

    Runs on the server. Results are collected as `CollectingController` says.

    The model of round r, which round r starts from, is measured in round r. When the best model is
    `patience` rounds older, round r is the last. The model that it makes is written, measured as
    the final one by the next workflow, and may still be the best.

    Rounds since the best model are counted across continued jobs, without those whose models could
    not be compared with it (`not_compared` in the manifest), and not while there is no best model.

    Args:
        num_rounds: Rounds of this job, added to those of a continued run. 0: those that the
            continued run has not made, if any. Default 5.
        patience: Rounds without a better model after which to stop. Default 0: never.
        min_clients: Accepted results that a round needs. Default 0: those of all sites of the job,
            also of one at which FLARE has not started it.
        wait_time_after_min_received: Seconds to wait for the others then. Default 10.
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
        flares = {name: value for name, value in vars(self).items() if name != "patience"}
        flares["min_clients"] = self.min_clients or 1  # it takes no 0, see `start_controller`
        super().__init__(**flares)
        check_non_negative_int("patience", self.patience)
        check_non_negative_int("min_clients", self.min_clients)

    def current_round(self, fl_ctx: FLContext) -> int | None:
        """The round that is running."""
        return fl_ctx.get_prop(AppConstants.CURRENT_ROUND)

    def read(self, shareable: Shareable) -> SiteResult:
        """What a site has trained."""
        return results.trained(shareable)

    def fault(self, result: SiteResult, fl_ctx: FLContext) -> str | None:
        """What is wrong with the metrics that came with a trained model."""
        unknown = None if getattr(self.aggregator, "personal_head", False) else ()
        return metrics.fault(result.metrics, declared_classes(fl_ctx) or unknown)

    def prepare(self, client_task: ClientTask, result: SiteResult, fl_ctx: FLContext) -> None:
        """Set the result's round, its site's name, and metrics that are plain numbers."""
        shareable = client_task.result
        dxo = from_shareable(shareable)
        dxo.set_meta_prop(FLMetaKey.SITE_NAME, client_task.client.name)
        dxo.set_meta_prop(MetaKey.INITIAL_METRICS, dict(result.metrics))
        dxo.update_shareable(shareable)
        shareable.set_header(AppConstants.CURRENT_ROUND, self.current_round(fl_ctx))

    def start_controller(self, fl_ctx: FLContext) -> None:
        """Load the model, and begin with its round."""
        flare_internals.need_results(self, self.min_clients)
        super().start_controller(fl_ctx)
        model = fl_ctx.get_prop(AppConstants.GLOBAL_MODEL)
        if not isinstance(model, ModelLearnable) or model.is_empty():
            return  # FLARE has ended the run, with the reason
        manifest = GlobalModel.from_learnable(model).manifest
        first, number = manifest.round, self.num_rounds
        if number == 0 and "planned_rounds" not in manifest:
            self.system_panic(
                "num_rounds needs a number above 0, or a run that is continued and whose missing "
                "rounds are made; got 0, and no earlier job's model to start from that says how "
                "many were planned. Give num_rounds.",
                fl_ctx,
            )
        elif number == 0:
            number = manifest.missing_rounds
            if number == 0:  # the model is this job's as it is
                self.persistor.save(model, fl_ctx)
        flare_internals.plan_rounds(self, first, number)
        fl_ctx.set_prop(AppConstants.START_ROUND, first, private=True, sticky=True)
        GlobalModel.set_manifest(manifest.with_facts(planned_rounds=first + number), fl_ctx)

    def handle_event(self, event_type: str, fl_ctx: FLContext) -> None:
        """Decide, when a round's model is made and not yet written, whether it is the last."""
        super().handle_event(event_type, fl_ctx)
        if event_type == AppEventType.AFTER_SHAREABLE_TO_LEARNABLE and self.patience:
            self._consider_stopping(fl_ctx)

    def _consider_stopping(self, fl_ctx: FLContext) -> None:
        round_ = fl_ctx.get_prop(AppConstants.CURRENT_ROUND)
        best = fl_ctx.get_prop(headers.BEST_ROUND)
        manifest = GlobalModel.current(fl_ctx).manifest
        if best is None or round_ + 1 >= manifest["planned_rounds"]:
            return
        worse = round_ - best - manifest.get("not_compared", 0)
        if worse < self.patience:
            return
        first = fl_ctx.get_prop(AppConstants.START_ROUND)
        flare_internals.plan_rounds(self, first, round_ + 1 - first)  # this one is the last
        GlobalModel.set_manifest(manifest.with_facts(planned_rounds=round_ + 1), fl_ctx)
        why = f"none of the models of {worse} rounds is better than that of round {best}"
        self.log_info(fl_ctx, f"round {round_} is the last: {why} (patience {self.patience})")
        stopped = {"round": round_, "best_round": best, "patience": self.patience}
        self.fire_event_with_data(headers.TRAINING_STOPPED, fl_ctx, headers.STOPPED, stopped)
