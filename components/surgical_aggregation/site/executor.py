"""The executor: FLARE's training and evaluation tasks with a site's Keras model."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nvflare.apis.event_type import EventType
from nvflare.apis.executor import Executor
from nvflare.apis.fl_constant import ReturnCode
from nvflare.apis.fl_context import FLContext
from nvflare.apis.shareable import Shareable, make_reply
from nvflare.apis.signal import Signal

from surgical_aggregation.aggregation.batch_norm_strategy import Strategy
from surgical_aggregation.aggregation.one_sided import LABELLED, NEGATIVE
from surgical_aggregation.site import site_answer
from surgical_aggregation.site.class_declaration import declare_versions, note_withheld
from surgical_aggregation.site.contract.restricted_site import find_site
from surgical_aggregation.site.contract.site import SiteError
from surgical_aggregation.site.local_notes import CANNOT_PARTICIPATE, note, note_error, notes_file
from surgical_aggregation.site.site_answer import check_filters
from surgical_aggregation.site.site_tasks import SiteTasks
from surgical_aggregation.site.training import tensorflow_setup
from surgical_aggregation.site.training.training_options import SENT, training_options
from surgical_aggregation.wire import flare_internals
from surgical_aggregation.wire.allow_list import check_allow_list
from surgical_aggregation.wire.headers import CHECK_TASK

MOST_THREADS = 1024
"""Largest number of CPU threads; TensorFlow creates as many as requested, or aborts."""


@dataclass(eq=False)
class KerasExecutor(Executor):
    """Train and evaluate a site's Keras model.

    Runs on the client. One model and one optimizer are compiled once and used for the whole job.
    Tasks:

        train       in   body, and those of the site's columns that the server has
                    out  variables by path that the strategy does not keep at the site, with the
                         dense head unless it is personal (`LabelHead` splits it into columns);
                         meta: metrics of the received model on the validation split, measured
                         before training, the training loss, and the number of images trained on
        validate    in   as above; out  metrics of the validation split
        test        in   as above; out  metrics of the test split
        refit       in   as above; out  the dense head only, its columns refitted on the received
                         body (see `column_refit`); the body is not trained
        check       in   names and shapes of the body's variables; out  whether the site can
                         participate (see `site_answer`); if not, it refuses all further tasks

    Classes without a column are warmed up on the received body before they are measured and
    trained; an evaluation leaves them out. An abort takes effect after the running batch.

    A class that the site's policy withholds (see `site_policy`) is not trained, and is in no model,
    metric or count that is sent; if the policy withholds counts, metrics are rounded.

    After every round the site's state (optimizer, random generators, personal variables) is saved
    to <client workspace>/checkpoints/<job id>/, from where a new process or a resumed run restores
    it. A site with personal variables also saves its complete models there: `site_last.npz`, and
    `site_best.npz` once the best model is tested.

    If the site's data or model is unusable, or a task fails, the reply is EXECUTION_EXCEPTION, and
    the run continues while `min_clients` can be reached without the site. (A panic on the client
    would leave the server waiting.) The reason may contain a path, a count or a row of a table, so
    it is only in the site's notes, since FLARE may stream its logs (see `local_notes`).

    Args:
        training: Options of `TrainingOptions` by name, for those that differ from the default.
            Default None.
        mixed_precision: Compute in float16 if the site has a GPU, in bfloat16 if its CPU supports
            it, else in float32; variables stay float32. Default False.
        send: "weights" (default), or "differences" from the received model, which FLARE's privacy
            filters need. Missing columns count as zeros there.
        report_counts: Send the number of positive training images per class, for head_weighting
            "positives", and the positives and negatives of an evaluation, if the site's policy
            permits it. Default False.
        report_features: With the test of the best model, send mean and variance of each feature
            over the test images, from which users of the model can detect images unlike them (see
            `feature_statistics`), if the site's policy permits it. Default False.
        seed: Seed of this site's shuffling and initial head. Default 0.
        threads: Number of CPU threads of this site, `MOST_THREADS` at most. Default 0: all cores,
            shared among simulated sites.
        strategy: Strategy as an object, if the job gives it by class path (see
            `aggregation.batch_norm_strategy`); replaces the option of that name. Default None.
    """

    training: Mapping[str, Any] | None = None
    mixed_precision: bool = False
    send: str = "weights"
    report_counts: bool = False
    report_features: bool = False
    seed: int = 0
    threads: int = 0
    strategy: Strategy | None = None

    def __post_init__(self) -> None:
        super().__init__()
        self._tasks: SiteTasks | None = None
        self._mixed = False

    def handle_event(self, event_type: str, fl_ctx: FLContext) -> None:
        """Build the model and read the data when the run starts, so that errors show early."""
        if event_type == EventType.ABOUT_TO_START_RUN:  # before any component can use TensorFlow
            self._mixed = tensorflow_setup.configure(
                self._threads(fl_ctx), self.seed, self.mixed_precision
            )
        elif event_type == EventType.START_RUN:
            declare_versions(fl_ctx)  # a personal head has no DeclareClasses
            try:
                self._start(fl_ctx)
            except Exception as error:  # from the site's files, its code, or FLARE
                self._log_error(CANNOT_PARTICIPATE, error, fl_ctx)

    def _threads(self, fl_ctx: FLContext) -> int:
        return min(self.threads, MOST_THREADS) or tensorflow_setup.threads_per_site(fl_ctx)

    def _start(self, fl_ctx: FLContext) -> None:
        flare_internals.check_names()
        flare_internals.forget_sent_messages()
        check_allow_list(fl_ctx)
        own = {"strategy": self.strategy} if self.strategy else {}
        options = training_options({**(self.training or {}), **own})
        if self.send not in SENT:
            raise SiteError(f"send must be one of {SENT}; got {self.send!r}.")
        if self.mixed_precision and not self._mixed:
            needs = "mixed precision needs a GPU, or a CPU with bfloat16"
            self.log_warning(fl_ctx, f"{needs}; this site has neither: float32")
        check_filters(self.send, fl_ctx)
        from surgical_aggregation.site.training.trainer import LocalTraining

        site = find_site(fl_ctx)
        if options.personal_head:  # else DeclareClasses does
            note_withheld(self, site, fl_ctx)
        counts = self.report_counts and site.policy.report_counts
        if self.report_counts and not counts:
            self.log_info(fl_ctx, "the job requests counts; this site's policy withholds them")
        features = self.report_features and site.policy.report_features
        training, threads = LocalTraining(site, options), self._threads(fl_ctx)
        for name, what in training.lacking.items():
            if what == LABELLED:  # of a union's head
                continue
            learned = "present" if what == NEGATIVE else "absent"
            text = f"{name} has no {what} training image, so its column learns {learned!r} only"
            self.log_warning(fl_ctx, f"{fl_ctx.get_identity_name()}: {text}", fire_event=False)
            note(fl_ctx, text)
        # last, since nothing can fail any more
        self._tasks = SiteTasks(training, counts, features, self.send, self._log)
        self._log(fl_ctx, f"ready: {len(site.classes)} classes, {threads} CPU threads")

    def execute(
        self, task_name: str, shareable: Shareable, fl_ctx: FLContext, abort_signal: Signal
    ) -> Shareable:
        """Carry out a task; see the class."""
        if self._tasks is None and task_name != CHECK_TASK:
            self.log_error(
                fl_ctx, f"{task_name} refused: this site does not participate, see above"
            )
            return make_reply(ReturnCode.EXECUTION_EXCEPTION)
        try:
            if self._tasks is None or task_name == CHECK_TASK:
                return self._check(shareable, fl_ctx)
            return self._tasks.carry_out(task_name, shareable, fl_ctx, abort_signal)
        except Exception as error:  # FLARE would write it into the error log, which it may stream
            self._log_error(f"{task_name} failed", error, fl_ctx)
            return make_reply(ReturnCode.EXECUTION_EXCEPTION)

    def _check(self, question: Shareable, fl_ctx: FLContext) -> Shareable:
        training = None if self._tasks is None else self._tasks.training
        reason = None
        if training is None:  # the reason may contain a path, a count or a row
            reason = f"the reason is in {notes_file(fl_ctx.get_job_id())} there"
        try:
            site_answer.check(question, training, fl_ctx)
        except SiteError as error:
            self._tasks, reason = None, str(error)
            self._log_error(CANNOT_PARTICIPATE, error, fl_ctx)
        return site_answer.answer(reason, fl_ctx)

    def _log_error(self, what: str, error: Exception, fl_ctx: FLContext) -> None:
        self.log_error(fl_ctx, note_error(fl_ctx, what, error), fire_event=False)

    def _log(self, fl_ctx: FLContext, text: str) -> None:
        """Log with the site's name, which the simulator's console omits."""
        self.log_info(fl_ctx, f"{fl_ctx.get_identity_name()}: {text}")
