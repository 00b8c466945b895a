"""The executor: FLARE's train and evaluation tasks on a site's Keras model."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from nvflare.apis.dxo import DXO, DataKind, MetaKey
from nvflare.apis.event_type import EventType
from nvflare.apis.executor import Executor
from nvflare.apis.fl_constant import ReturnCode
from nvflare.apis.fl_context import FLContext
from nvflare.apis.shareable import Shareable, make_reply
from nvflare.apis.signal import Signal
from nvflare.app_common.app_constant import AppConstants

from surgical_aggregation import tensorflow_runtime, wire
from surgical_aggregation.averaging import Variables
from surgical_aggregation.checkpoint import digest
from surgical_aggregation.global_model import INITIAL_BODY
from surgical_aggregation.site import Site, SiteError, Split, find_site

if TYPE_CHECKING:  # TensorFlow must not start before its threads are set
    import tensorflow as tf

    from surgical_aggregation.local_model import LocalModel

CANNOT_TAKE_PART = "this site cannot take part in the run: "
"""How the log line begins that says why a site could not start."""

EVALUATION_TASKS: dict[str, Split] = {"validate": "validation", "test": "test"}


class KerasExecutor(Executor):
    """Train and evaluate a site's Keras model.

    Runs on the client. One model and one optimizer live for the whole job; nothing is compiled
    twice. Tasks:

        train       in   body and the site's columns (those that the server has yet)
                    out  all variables by path, the dense head among them (`LabelHead` labels it);
                         meta: metrics of the received model on the validation split, measured
                         before training, and the number of images trained on
        validate    in   as above; out  metrics of the validation split
        test        in   as above; out  metrics of the test split

    Classes that the server has no column for yet are warmed up on the received body before they are
    measured and trained; an evaluation leaves them out. An abort during training is obeyed after
    the running batch.

    A site whose data or model is unusable says why in its own log when the run starts, and answers
    every task with EXECUTION_EXCEPTION: the run goes on while `min_clients` can be reached without
    it, and ends at once otherwise. (A panic on the client would leave the server waiting.) The
    reason, which may hold a path, stays at the site.

    Args:
        site_id: Id of the `Site` component. Default "site".
        epochs: Passes over the training split per round. Default 1 (the papers).
        learning_rate: Of Adam. Default 5e-5 (the papers, for DenseNet121).
        warmup_epochs: Passes for columns that the server lacks. Default 15 (the papers).
        warmup_learning_rate: Default 5e-3 (the papers).
        freeze_batch_norm: FedBN+: batch normalisation keeps the initial body's values. Default
            True.
        report_positives: Tell the server how many positive labels of each class the site has, which
            it needs only for head_weighting "positives". Default False.
        seed: Of this site's shuffling and initial head. Default 0.
        threads: CPU threads of this site; default 0: all cores, shared among simulated sites.
    """

    def __init__(
        self,
        site_id: str = "site",
        epochs: int = 1,
        learning_rate: float = 5e-5,
        warmup_epochs: int = 15,
        warmup_learning_rate: float = 5e-3,
        freeze_batch_norm: bool = True,
        report_positives: bool = False,
        seed: int = 0,
        threads: int = 0,
    ):
        super().__init__()
        self.site_id = site_id
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.warmup_epochs = warmup_epochs
        self.warmup_learning_rate = warmup_learning_rate
        self.freeze_batch_norm = freeze_batch_norm
        self.report_positives = report_positives
        self.seed = seed
        self.threads = threads
        self._site: Site | None = None
        self._model: LocalModel | None = None
        self._data: dict[tuple[Split, bool], tf.data.Dataset] = {}
        self._images = 0
        self._positives: dict[str, int] = {}

    def handle_event(self, event_type: str, fl_ctx: FLContext) -> None:
        """Build the model and read the data when the run starts, so that faults show before it."""
        if event_type != EventType.START_RUN:
            return
        try:
            self._start(fl_ctx)
        except (ValueError, OSError, MemoryError) as error:
            self.log_error(fl_ctx, f"{CANNOT_TAKE_PART}{error}")

    def _start(self, fl_ctx: FLContext) -> None:
        threads = self.threads or tensorflow_runtime.threads_per_site(fl_ctx)
        tensorflow_runtime.configure(threads, self.seed)
        from surgical_aggregation.local_model import LocalModel

        self._site = find_site(self.site_id, fl_ctx)
        model = LocalModel(
            self._site.model(),
            tuple(self._site.classes),
            learning_rate=self.learning_rate,
            freeze_batch_norm=self.freeze_batch_norm,
        )
        self._data = {
            ("train", True): self._site.data("train", training=True),
            ("train", False): self._site.data("train"),
            ("validation", False): self._site.data("validation"),
            ("test", False): self._site.data("test"),
        }
        batches = [labels for _, labels in self._data["train", False].as_numpy_iterator()]
        self._images = sum(len(labels) for labels in batches)
        positives = sum((labels == 1).sum(axis=0) for labels in batches)
        self._positives = dict(zip(self._site.classes, map(int, positives), strict=True))
        self._model = model  # now that nothing can fail any more
        self._log(fl_ctx, f"ready: {len(self._site.classes)} classes, {threads} CPU threads")

    def execute(
        self, task_name: str, shareable: Shareable, fl_ctx: FLContext, abort_signal: Signal
    ) -> Shareable:
        """Carry out a task; see the class.

        Raises:
            WireError: The task carries no model.
            SiteError: The model is not this site's.
        """
        if self._model is None:
            self.log_error(fl_ctx, f"{task_name} refused: this site could not start, see above")
            return make_reply(ReturnCode.EXECUTION_EXCEPTION)
        body, columns = wire.split(wire.weights(shareable).data)
        self._model.set_body(body)
        self._model.set_columns(columns)
        self._check_start(shareable.get_header(INITIAL_BODY), body)
        if task_name in EVALUATION_TASKS:
            values = self._model.evaluate(self._data[EVALUATION_TASKS[task_name], False], columns)
            self._log(fl_ctx, f"{task_name}: {_summary(values)}")
            return DXO(DataKind.METRICS, data=values).to_shareable()
        return self._train(
            self._model,
            columns,
            shareable.get_header(AppConstants.CURRENT_ROUND),
            fl_ctx,
            abort_signal,
        )

    def _log(self, fl_ctx: FLContext, text: str) -> None:
        """Log with the site's name, which the simulator's console leaves out."""
        self.log_info(fl_ctx, f"{fl_ctx.get_identity_name()}: {text}")

    def _check_start(self, initial: str | None, body: Variables) -> None:
        if initial is not None and digest(body) != initial:
            raise SiteError(
                f"the run starts from the body with sha256 {initial[:12]}; this site received "
                f"{digest(body)[:12]}. Does a filter between server and site change it?"
            )

    def _train(
        self,
        model: LocalModel,
        columns: wire.Columns,
        round_: int,
        fl_ctx: FLContext,
        abort_signal: Signal,
    ) -> Shareable:
        new = tuple(name for name in model.classes if name not in columns)
        if new:
            model.warm_up(
                new,
                self._data["train", False],
                epochs=self.warmup_epochs,
                learning_rate=self.warmup_learning_rate,
            )
            self._log(fl_ctx, f"warmed up the columns of {len(new)} classes")
        began = time.monotonic()
        values = model.evaluate(self._data["validation", False], model.classes)
        validated = time.monotonic()
        loss = model.train(
            self._data["train", True], epochs=self.epochs, stop=lambda: abort_signal.triggered
        )
        if loss is None:
            return make_reply(ReturnCode.TASK_ABORTED)
        values["warmed_up"] = float(len(new))
        values["validate_seconds"] = validated - began
        values["train_seconds"] = time.monotonic() - validated
        self._log(fl_ctx, f"round {round_}: received {_summary(values)}; training loss {loss:.4f}")
        meta = {
            MetaKey.INITIAL_METRICS: values,
            MetaKey.NUM_STEPS_CURRENT_ROUND: self._images * self.epochs,
        }
        if self.report_positives:
            meta[wire.POSITIVES] = self._positives
        return DXO(DataKind.WEIGHTS, data=model.variables(), meta=meta).to_shareable()


def _summary(values: dict[str, float]) -> str:
    parts = [f"{name} {values[name]:.4f}" for name in ("bce", "auroc") if name in values]
    return ", ".join(parts)
