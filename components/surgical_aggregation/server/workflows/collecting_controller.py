"""Collect the sites' results of a task, and decide how long to wait for them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from nvflare.apis.client import Client
from nvflare.apis.controller_spec import ClientTask, Task, TaskCompletionStatus
from nvflare.apis.filter import Filter
from nvflare.apis.fl_constant import ReturnCode
from nvflare.apis.fl_context import FLContext
from nvflare.apis.impl.controller import Controller
from nvflare.apis.shareable import Shareable
from nvflare.apis.signal import Signal
from nvflare.app_common.app_constant import AppConstants
from nvflare.fuel.utils.validation_utils import check_non_negative_int

from surgical_aggregation.aggregation import metrics
from surgical_aggregation.aggregation.site_result import SiteResult
from surgical_aggregation.server.access import job_sites
from surgical_aggregation.server.access.class_filters import SelectHead, lacking_guards
from surgical_aggregation.server.access.refusal_events import announce
from surgical_aggregation.wire import flare_internals, headers

UNKNOWN_TASK = "unknown"
"""Recorded as the task of a refused result that belongs to no running task."""

_POLL_SECONDS = 0.5
"""Seconds between two checks of which sites are gone."""

_LOG_SECONDS = 60.0
"""Seconds between two log lines about the sites that a task waits for."""

_MEANING = {
    ReturnCode.EXECUTION_EXCEPTION: "the task failed there; see its own log",
    ReturnCode.EXECUTION_RESULT_ERROR: "it withholds its result; see its own log",
    ReturnCode.TASK_UNKNOWN: "its configuration has no executor for the task",
    ReturnCode.TASK_ABORTED: "its task was aborted",
    ReturnCode.UNSAFE_JOB: "its policy considers the job unsafe",
}

Callback = Callable[[ClientTask, FLContext], None]
Verdict = Literal["open", "enough", "too few"]


@dataclass
class TaskStatus:
    """The state of a task: which sites have replied, and whether to keep waiting.

    Times are seconds of any monotonic clock.

    Attributes:
        task: Name of the task.
        round: The running round; None for an evaluation.
        sites: Names of the sites that the task is for, including those it could not be sent to.
        needed: Number of accepted results that the task needs.
        wait: Grace period: seconds to wait for the other sites once `needed` is reached.
        wait_for_all: Whether to grant the grace period also when `needed` cannot be reached, to
            collect every site's reason. Default False.
        accepted: Sites whose results were accepted, in order of arrival.
        failed: Sites that replied, but whose result was not accepted.
        reasons: Site -> the first reason why its result was refused or is missing.
        reached: When the grace period began; None: not yet.
    """

    task: str
    round: int | None
    sites: Collection[str]
    needed: int
    wait: float
    wait_for_all: bool = False
    accepted: list[str] = field(default_factory=list)
    failed: set[str] = field(default_factory=set)
    reasons: dict[str, str] = field(default_factory=dict)
    reached: float | None = None

    def accept(self, site: str, now: float) -> None:
        """Record that a site's result was accepted at time `now`."""
        self.accepted.append(site)
        if len(self.accepted) == self.needed:
            self.reached = now

    @property
    def _name(self) -> str:
        return f"task {self.task!r}" + ("" if self.round is None else f" of round {self.round}")

    @property
    def absent(self) -> dict[str, str]:
        """Site whose result was not accepted -> reason; complete when the task is over."""
        return {
            site: self.reasons.get(site, "not known")
            for site in sorted(self.sites)
            if site not in self.accepted
        }

    def outstanding(self) -> set[str]:
        """Sites that have not replied."""
        return set(self.sites) - set(self.accepted) - self.failed

    def verdict(self, now: float, gone: Collection[str] = ()) -> Verdict:
        """Decide at time `now` whether the task is over; `gone` sites will not reply.

        Returns:
            "open": keep waiting. "enough": `needed` results are accepted, and all other sites have
            replied, are gone, or the grace period is over. "too few": `needed` cannot be reached
            (with `wait_for_all`, only after the grace period or the last possible reply).
        """
        pending = self.outstanding() - set(gone)
        short = len(self.accepted) + len(pending) < self.needed
        if short and self.reached is None:
            self.reached = now
        if not short and len(self.accepted) < self.needed:  # a site that was gone is back
            self.reached = None
        if self.reached is None:
            return "open"
        waits = pending and now - self.reached < self.wait and (self.wait_for_all or not short)
        return "open" if waits else "too few" if short else "enough"

    def waiting(self, now: float, began: float, gone: Collection[str] = ()) -> str:
        """Log line: which sites the task waits for, since when, and how much longer if known."""
        names = ", ".join(sorted(self.outstanding() - set(gone)))
        got = f"{len(self.accepted)} of the {self.needed} results that it needs are accepted"
        left = ""
        if self.reached is not None:
            left = f"; up to {self.reached + self.wait - now:.0f} s more"
        return f"{self._name} waits for {names}, for {now - began:.0f} s now; {got}{left}"

    def shortage(self, also: Sequence[str] = ()) -> str | None:
        """Why the run must end: each site's reason, then those in `also`.

        None if enough results were accepted.
        """
        if len(self.accepted) >= self.needed:
            return None
        reasons = [f"{site}: {reason}" for site, reason in self.absent.items()]
        return (
            f"{self._name} needs accepted results of {self.needed} of the "
            f"{len(self.sites)} sites; got {len(self.accepted)} (accepted: "
            f"{', '.join(sorted(self.accepted)) or 'none'}; refused or silent: "
            f"{'; '.join([*reasons, *also]) or 'none'}). Fix the sites, or lower min_clients."
        )


class CollectingController(Controller):
    """Mixin for FLARE workflows that count accepted results only.

    Runs on the server. Put it before the workflow class in the bases: FLARE counts every reply,
    even an error. A task ends when `min_responses` results are accepted and the grace period
    (`wait_time_after_min_received` seconds) is over, or when no other site can still reply. If that
    number cannot be reached, the run ends at once and the reason of each site is recorded.

    A result is refused, and the run continues without that site, if its return code is not OK
    (including UNSAFE_JOB, TASK_UNKNOWN and RUN_MISMATCH, for which FLARE would end the job for all
    sites), if `fault` finds a defect, if it was not requested, or if its site is in `LEFT_OUT`. A
    site that does not reply is recorded too.

    The sites are those of the job, see `sites_of_job`; one where FLARE has not started the job
    counts as gone. While a task waits, the server's log names the outstanding sites every minute.
    The outcome is in the context property `COLLECTED`, for the run's record.

    Filters read from the context which site a task is sent to, see `site_of`. If the server's
    filters lack one of `guards`, no task is sent and the run ends.

    Attributes:
        guards: Filters that the server must have for the tasks of this workflow.
        wait_for_all: See `TaskStatus`.
    """

    guards: frozenset[type[Filter]] = frozenset({SelectHead})
    wait_for_all = False

    _status: TaskStatus | None = None

    def start_controller(self, fl_ctx: FLContext) -> None:
        """Keep FLARE from ending the job because of one site's reply."""
        flare_internals.ignore_abort_return_codes(fl_ctx)
        flare_internals.refuse_unreadable_results(fl_ctx.get_job_id())
        super().start_controller(fl_ctx)

    def current_round(self, fl_ctx: FLContext) -> int | None:
        """The running round; None outside of training."""
        return None

    def read(self, shareable: Shareable) -> SiteResult:
        """Read a result with return code OK, once for all server components; here: an empty one."""
        return SiteResult({}, {})

    def fault(self, result: SiteResult, fl_ctx: FLContext) -> str | None:
        """Why a result must be refused; None: it may be passed on."""
        return None

    def prepare(self, client_task: ClientTask, result: SiteResult, fl_ctx: FLContext) -> None:
        """Overwrite the fields of an accepted result that FLARE's components trust."""

    def broadcast_and_wait(
        self,
        task: Task,
        fl_ctx: FLContext,
        targets: list[Client] | list[str] | None = None,
        min_responses: int = 1,
        wait_time_after_min_received: int = 0,
        abort_signal: Signal | None = None,
    ) -> None:
        """Send a task to sites, and wait for accepted results; see the class.

        Args:
            task: The task; its result callback gets only results that pass the checks.
            fl_ctx: Context of the run.
            targets: Sites or their names; None: all sites of the job.
            min_responses: Number of accepted results needed; 0: one from every site.
            wait_time_after_min_received: Grace period in seconds for the other sites.
            abort_signal: Cancels the task when triggered; None: never.
        """
        if why := lacking_guards(task.name, self.guards, fl_ctx):
            self.system_panic(why, fl_ctx)
            return
        sites = [getattr(site, "name", site) for site in targets or job_sites.sites_of_job(fl_ctx)]
        round_, needed = self.current_round(fl_ctx), min_responses or len(sites)
        wait = wait_time_after_min_received
        status = TaskStatus(task.name, round_, sites, needed, wait, self.wait_for_all)
        self._status, self._answered = status, threading.Event()
        task.before_task_sent_cb = self._sending(task.before_task_sent_cb, status)
        task.result_received_cb = self._receiving(task.result_received_cb, status)
        super().broadcast(task, fl_ctx, targets, min_responses=0)  # FLARE's 0: all of them
        if self._wait(task, status, fl_ctx, abort_signal):
            self._conclude(task, status, fl_ctx)

    def _wait(
        self, task: Task, status: TaskStatus, fl_ctx: FLContext, abort_signal: Signal | None
    ) -> bool:
        """Wait until the task is over; False if it was aborted."""
        began = time.monotonic()
        due = began + _LOG_SECONDS
        while task.completion_status is None:
            if abort_signal and abort_signal.triggered:
                self.cancel_task(task, TaskCompletionStatus.ABORTED)
                return False
            with task.cb_lock:  # FLARE holds it while it processes a result
                gone = self._gone(status, fl_ctx)
                if status.verdict(time.monotonic(), gone) != "open":
                    self.cancel_task(task, TaskCompletionStatus.OK)
                    break
                if (now := time.monotonic()) > due:
                    due = now + _LOG_SECONDS
                    self.log_info(fl_ctx, status.waiting(now, began, gone))
            self._answered.wait(_POLL_SECONDS)
            self._answered.clear()
        return True

    def _sending(self, callback: Callback | None, status: TaskStatus) -> Callback:
        def send(client_task: ClientTask, fl_ctx: FLContext) -> None:
            site = client_task.client.name
            job_sites.set_site(site, fl_ctx)
            reason = job_sites.declaration_fault(fl_ctx)
            if reason and site not in status.reasons:  # else at every request
                asked = headers.REQUEST_REFUSED
                announce(self, fl_ctx, site, status.task, status.round, reason, asked)
            job_sites.bind_declaration(fl_ctx)
            self.fire_event(headers.CLASSES_DECLARED, fl_ctx)
            if callback:
                callback(client_task, fl_ctx)

        return send

    def _receiving(self, callback: Callback | None, status: TaskStatus) -> Callback:
        def receive(client_task: ClientTask, fl_ctx: FLContext) -> None:
            site = client_task.client.name
            job_sites.set_site(site, fl_ctx)
            try:
                reason = self._reason(client_task, fl_ctx)
                if reason is None and callback:
                    callback(client_task, fl_ctx)
                    if fl_ctx.get_prop(AppConstants.AGGREGATION_ACCEPTED) is False:
                        reason = "the aggregator did not accept it; see the server's log"
            except Exception as error:  # whatever a site sends, or FLARE ends the round for all
                reason = f"it could not be read ({type(error).__name__}: {error})"
            if reason is None:
                status.accept(site, time.monotonic())
            else:
                status.failed.add(site)
                client_task.result = None
                if fl_ctx.get_prop(headers.REFUSAL) is None:  # else it is announced already
                    announce(self, fl_ctx, site, status.task, status.round, reason)
            self._answered.set()

        return receive

    def _reason(self, client_task: ClientTask, fl_ctx: FLContext) -> str | None:
        left_out: dict[str, str] = fl_ctx.get_prop(headers.LEFT_OUT, {})
        if reason := left_out.get(client_task.client.name):
            return reason
        code = client_task.result.get_return_code()
        if code and code != ReturnCode.OK:
            return f"{_MEANING.get(str(code), 'it did not carry out the task')} ({code})"
        if reason := job_sites.declaration_fault(fl_ctx):
            return reason
        result = self.read(client_task.result)
        if reason := self.fault(result, fl_ctx):
            return reason
        result = replace(result, metrics=metrics.numbers(result.metrics))
        fl_ctx.set_prop(headers.RESULT, result, private=True, sticky=False)
        self.prepare(client_task, result, fl_ctx)
        return None

    def process_result_of_unknown_task(
        self,
        client: Client,
        task_name: str,
        client_task_id: str,
        result: Shareable,
        fl_ctx: FLContext,
    ) -> None:
        """Refuse a result that is unreadable, late, or was not requested."""
        job_sites.set_site(client.name, fl_ctx)
        task, reason = UNKNOWN_TASK, "it came after its task was over, or belongs to no task"
        if (why := result.get_header(headers.UNREADABLE)) and self._status:
            task, reason = self._status.task, f"it could not be read ({why})"
            if client.name in self._status.reasons:  # count it once: FLARE retries
                self._status.failed.add(client.name)
            self._answered.set()
        if fl_ctx.get_prop(headers.REFUSAL) is None:
            announce(self, fl_ctx, client.name, task, self.current_round(fl_ctx), reason)

    def handle_event(self, event_type: str, fl_ctx: FLContext) -> None:
        """Record why results are refused, by whichever component."""
        super().handle_event(event_type, fl_ctx)
        refused = headers.CONTRIBUTION_REFUSED, headers.REQUEST_REFUSED
        if event_type in refused and self._status:
            refusal = fl_ctx.get_prop(headers.REFUSAL)
            if refusal["task"] == self._status.task:
                self._status.reasons.setdefault(refusal["site"], refusal["reason"])

    def _gone(self, status: TaskStatus, fl_ctx: FLContext) -> dict[str, str]:
        """Site -> why it will not reply any more."""
        ended = filter(self.get_client_disconnect_time, status.outstanding())
        gone: dict[str, str] = job_sites.not_started(fl_ctx) | fl_ctx.get_prop(headers.GONE, {})
        return gone | dict.fromkeys(ended, "its job process has ended")

    def _conclude(self, task: Task, status: TaskStatus, fl_ctx: FLContext) -> None:
        """Announce silent sites, and end the run if too few results were accepted."""
        gone = self._gone(status, fl_ctx)
        sent = {client_task.client.name for client_task in task.client_tasks}
        waited = status.verdict(time.monotonic(), gone) == "enough"
        waited = waited or task.completion_status == TaskCompletionStatus.TIMEOUT
        for site in sorted(status.outstanding()):
            late = "it has not replied in time" if site in sent else "it has not requested the task"
            if not waited:
                late = "it still had time when the task ended"
            why = gone.get(site, late)
            status.reasons.setdefault(site, why)
            announce(self, fl_ctx, site, task.name, status.round, why, headers.SITE_SILENT)
        collected = {"accepted": sorted(status.accepted), "absent": status.absent}
        fl_ctx.set_prop(headers.COLLECTED, collected, private=True, sticky=False)
        exception = getattr(task, "exception", None)
        if shortage := status.shortage([f"the server: {exception}"] if exception else []):
            self.system_panic(shortage, fl_ctx)


class AskingController(CollectingController):
    """Base of dataclass workflows that send tasks outside of training rounds.

    Runs on the server.

    Attributes:
        min_clients: Number of accepted results that a task needs; 0: all sites of the job.
        wait_seconds: Grace period in seconds for the other sites after that.
    """

    min_clients: int
    wait_seconds: int

    def __post_init__(self, **flare_arguments: Any) -> None:
        super().__init__(**flare_arguments)
        check_non_negative_int("min_clients", self.min_clients)
        check_non_negative_int("wait_seconds", self.wait_seconds)

    def ask(self, task: Task, fl_ctx: FLContext, targets: list[str] | None = None) -> None:
        """Send a task to sites (None: all of the job), and wait for the results."""
        needed, wait, signal = self.min_clients, self.wait_seconds, fl_ctx.get_run_abort_signal()
        self.broadcast_and_wait(task, fl_ctx, targets, needed, wait, signal)
