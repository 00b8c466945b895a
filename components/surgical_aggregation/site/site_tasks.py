"""Carry out a site's tasks, and select which results leave the site."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from nvflare.apis.dxo import DXO, DataKind, MetaKey
from nvflare.apis.fl_constant import ReturnCode
from nvflare.apis.fl_context import FLContext
from nvflare.apis.shareable import Shareable, make_reply
from nvflare.apis.signal import Signal
from nvflare.app_common.app_constant import AppConstants

from surgical_aggregation.aggregation.averaging import Variables
from surgical_aggregation.aggregation.feature_statistics import statistics_of
from surgical_aggregation.aggregation.metrics import mean_over, summary, without_counts
from surgical_aggregation.checkpoints.checkpoint import digest
from surgical_aggregation.site.contract.site import SiteError, Split
from surgical_aggregation.site.site_memory import BEST_FILE, LAST_FILE, SiteMemory
from surgical_aggregation.site.training.task_abort import Stop, Stopped
from surgical_aggregation.wire import variables as wire

if TYPE_CHECKING:
    from surgical_aggregation.site.training.trainer import LocalTraining
from surgical_aggregation.wire import headers

TRAIN_TASK, REFIT_TASK = "train", "refit"
EVALUATION_TASKS: dict[str, Split] = {"validate": "validation", "test": "test"}


class ReceivedModel(NamedTuple):
    """A task's model: body by path, columns that the server has, round of the best model, round."""

    body: Variables
    columns: wire.Columns
    best: int | None
    round: int


@dataclass(eq=False)
class SiteTasks:
    """Carries out the tasks that `KerasExecutor` documents.

    Args:
        training: The site's training.
        counts: Whether to send the number of labels per class. If the site's policy withholds them,
            metrics are rounded, see `metrics.without_counts`.
        features: Whether to send feature statistics with a test.
        send: "weights", or "differences" from the received model.
        log: Writes to the site's log.
    """

    training: LocalTraining
    counts: bool
    features: bool
    send: str
    log: Callable[[FLContext, str], None]

    def __post_init__(self) -> None:
        self.exact = self.training.site.policy.report_counts
        self._memory = SiteMemory(self.training)

    def carry_out(
        self, task: str, shareable: Shareable, fl_ctx: FLContext, abort_signal: Signal
    ) -> Shareable:
        """Carry out a task; the reply is TASK_ABORTED if it is aborted.

        Raises:
            ValueError: The task's model does not fit this site's network, or the site lacks its
                personal variables.
        """
        body, columns = wire.split(wire.weights(shareable).data)
        initial_body = shareable.get_header(headers.INITIAL_BODY)
        if initial_body is not None and initial_body != digest(body):
            raise SiteError(
                f"the run starts from the body with sha256 {initial_body[:12]}; this site received "
                f"{digest(body)[:12]}. Does a filter between server and site change it?"
            )
        training = task == TRAIN_TASK
        round_ = shareable.get_header(
            AppConstants.CURRENT_ROUND if training else headers.MODEL_ROUND
        )
        ahead = round_ if training else None
        continues = shareable.get_header(headers.CONTINUES)
        if text := self._memory.restore(ahead, continues, fl_ctx):
            self.log(fl_ctx, text)
        if initial_body is not None and continues is None:
            self._memory.initial_body = initial_body
        model = ReceivedModel(body, columns, shareable.get_header(headers.BEST_ROUND), round_)

        def stop() -> bool:
            return bool(abort_signal.triggered)

        try:
            if training:
                return self._train(model, fl_ctx, stop)
            if task == REFIT_TASK:
                return self._refit(model, fl_ctx, stop)
            return self._evaluate(task, model, fl_ctx, stop)
        except Stopped:
            return make_reply(ReturnCode.TASK_ABORTED)

    def _evaluate(
        self, task: str, model: ReceivedModel, fl_ctx: FLContext, stop: Stop
    ) -> Shareable:
        training = self.training
        training.receive(model.body, model.columns, self._memory.of_round(model.round))
        unknown = training.unknown(model.columns)
        known = [name for name in training.classes if name not in unknown]
        predicted = training.predict(EVALUATION_TASKS[task], stop)
        values = training.model.metrics(predicted, known, counts=self.counts or not self.exact)
        reported = self._reported(values, EVALUATION_TASKS[task])
        self.log(fl_ctx, f"{task}: {summary(reported)}")
        if task == "validate":
            self._memory.measured(model.round, values)
            self._memory.keep_model(LAST_FILE, model.round, fl_ctx)
            return DXO(DataKind.METRICS, data=reported).to_shareable()
        features = statistics_of(predicted.features)
        self._memory.keep_model(BEST_FILE, model.round, fl_ctx, features)
        # A personal model's features are not the global model's: they stay in its own manifest.
        leaves = self.features and features and not training.has_personal
        meta = {headers.FEATURES: features} if leaves else {}
        return DXO(DataKind.METRICS, data=reported, meta=meta).to_shareable()

    def _train(self, model: ReceivedModel, fl_ctx: FLContext, stop: Stop) -> Shareable:
        training = self.training
        training.receive(model.body, model.columns)
        new = training.unknown(model.columns)
        if new:
            training.warm_up(new, stop)
            self.log(fl_ctx, f"warmed up the columns of {len(new)} classes")
        self._memory.begin_round(model.round, model.best)
        began = time.monotonic()
        predicted = training.predict("validation", stop)
        values = training.model.metrics(predicted, training.classes, counts=not self.exact)
        self._memory.measured(model.round, values)
        self._memory.keep_model(LAST_FILE, model.round, fl_ctx)
        validated = time.monotonic()
        values["train_loss"] = training.train(model.round, stop)
        values["warmed_up"] = float(len(new))
        values["validate_seconds"] = validated - began
        values["train_seconds"] = time.monotonic() - validated
        values = self._reported(values, "validation")
        self._memory.end_round(model.round, fl_ctx)
        trained = f"training loss {values['train_loss']:.4f}"
        self.log(fl_ctx, f"round {model.round}: received {summary(values)}; {trained}")
        return self._result(model, values, training.kept_at_site)

    def _reported(self, values: dict[str, float], split: Split) -> dict[str, float]:
        """The metrics to send; validation means, which select models, omit one-sided classes."""
        sent = values if self.exact else without_counts(values)
        lacking = self.training.lacking
        if split == "test" or not lacking:
            return sent
        return mean_over(sent, [name for name in self.training.classes if name not in lacking])

    def _refit(self, model: ReceivedModel, fl_ctx: FLContext, stop: Stop) -> Shareable:
        """Refit the columns on a model's frozen body; only they leave the site."""
        training = self.training
        if training.options.personal_head:
            raise SiteError("a personal head stays at the site, so it cannot be refitted.")
        training.receive(model.body, model.columns)
        penalty = training.refit(stop)
        outcome = "unchanged: refitting does not lower the validation loss"
        if penalty is not None:
            outcome = f"refitted, with penalty {penalty:g}"
        self.log(fl_ctx, f"the columns are {outcome}")
        return self._result(model, {}, set(training.variables()) - training.head)

    def _result(
        self, model: ReceivedModel, values: dict[str, float], stays: Collection[str]
    ) -> Shareable:
        """The result that leaves the site, without the variables in `stays`."""
        training = self.training
        meta = {
            MetaKey.INITIAL_METRICS: values,
            MetaKey.NUM_STEPS_CURRENT_ROUND: training.images * training.options.epochs,
        }
        if self.counts:
            meta[headers.POSITIVES] = dict(training.positives)
        if not training.options.personal_head:
            meta[headers.LACKING] = dict(training.lacking)
        kind, data = DataKind.WEIGHTS, training.variables()
        if self.send == "differences":
            kind, data = DataKind.WEIGHT_DIFF, training.differences(model.body, model.columns)
        data = {path: value for path, value in data.items() if path not in stays}
        return DXO(kind, data=data, meta=meta).to_shareable()
