"""How the workflows collect the sites' results to a task, and whether to wait on."""

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
"""Task of a refused result that answers none, whatever the result says."""

_LOOK = 0.5
"""Seconds between two looks at who is gone."""

_SAY = 60.0
"""Seconds after which it is said again for whom a task waits."""

_MEANING = {
    ReturnCode.EXECUTION_EXCEPTION: "it could not carry out the task; its own log says why",
    ReturnCode.EXECUTION_RESULT_ERROR: "it keeps its result; its own log says why",
    ReturnCode.TASK_UNKNOWN: "its configuration has no executor for the task",
    ReturnCode.TASK_ABORTED: "it was told to stop",
    ReturnCode.UNSAFE_JOB: "its policy takes the job for unsafe",
}

Callback = Callable[[ClientTask, FLContext], None]
Verdict = Literal["open", "enough", "too few"]


@dataclass
class TaskStatus:
    """The results of a task.

    Attributes:
        round: The running round; None for an evaluation.
        sites: Names of those that were asked, or should have been.
        needed: Accepted results that are needed.
        wait: Seconds to wait for the others then.
        hears_all: Whether to hear the others also where enough cannot come any more.
        accepted: Sites whose results were accepted, in order of arrival.
        failed: Sites that answered, and whose result was not accepted.
        reasons: Site -> the first reason why its result was refused, or never came.
        reached: When enough had been accepted, in seconds; None: not yet.
    """

    task: str
    round: int | None
    sites: Collection[str]
    needed: int
    wait: float
    hears_all: bool = False
    accepted: list[str] = field(default_factory=list)
    failed: set[str] = field(default_factory=set)
    reasons: dict[str, str] = field(default_factory=dict)
    reached: float | None = None

    def accept(self, site: str, now: float) -> None:
        """A site's result was accepted, at a time of any monotonic clock."""
        self.accepted.append(site)
        if len(self.accepted) == self.needed:
            self.reached = now

    @property
    def _name(self) -> str:
        return f"task {self.task!r}" + ("" if self.round is None else f" of round {self.round}")

    @property
    def absent(self) -> dict[str, str]:
        """Site whose result was not accepted -> why, when the task is over."""
        return {
            site: self.reasons.get(site, "not known")
            for site in sorted(self.sites)
            if site not in self.accepted
        }

    def outstanding(self) -> set[str]:
        """Sites that have not answered."""
        return set(self.sites) - set(self.accepted) - self.failed

    def verdict(self, now: float, gone: Collection[str] = ()) -> Verdict:
        """Whether to wait on, at a time, with some sites gone for good.

        Returns:
            "enough" when enough results were accepted, and all others have answered, are gone, or
            were waited for long enough; "too few" as soon as enough cannot come any more or, where
            it `hears_all`, once the others were waited for likewise.
        """
        coming = self.outstanding() - set(gone)
        short = len(self.accepted) + len(coming) < self.needed
        if short and self.reached is None:
            self.reached = now
        if self.reached is None:
            return "open"
        waits = coming and now - self.reached < self.wait and (self.hears_all or not short)
        return "open" if waits else "too few" if short else "enough"

    def waiting(self, now: float, began: float, gone: Collection[str] = ()) -> str:
        """For whom it waits at a time, and since when; for how long still, where that is known."""
        names = ", ".join(sorted(self.outstanding() - set(gone)))
        got = f"{len(self.accepted)} of the {self.needed} results that it needs are accepted"
        left = ""
        if self.reached is not None:
            left = f"; up to {self.reached + self.wait - now:.0f} s more"
        return f"{self._name} waits for {names}, for {now - began:.0f} s now; {got}{left}"

    def shortage(self, also: Sequence[str] = ()) -> str | None:
        """Why the run must end, with every site's reason and what `also` went wrong.

        None when enough results were accepted.
        """
        if len(self.accepted) >= self.needed:
            return None
        reasons = [f"{site}: {reason}" for site, reason in self.absent.items()]
        return (
            f"{self._name} needs accepted results of {self.needed} of the "
            f"{len(self.sites)} sites; got {len(self.accepted)} (accepted: "
            f"{', '.join(sorted(self.accepted)) or 'none'}; refused or silent: "
            f"{'; '.join([*reasons, *also]) or 'none'}). Mend the sites, or lower min_clients."
        )


class CollectingController(Controller):
    """A workflow that waits for accepted results, and knows each result's authenticated site.

    Runs on the server, as the first base of a workflow of FLARE's, which would count any answer. A
    task is over when enough results were accepted and the wait for the others has passed, or nobody
    else is coming. When enough cannot come any more, the run ends at once, with every site's
    reason.

    A result is refused, and the run goes on without that site, when its return code is not OK (also
    UNSAFE_JOB, TASK_UNKNOWN and RUN_MISMATCH, at which FLARE would end the job for all sites), when
    `fault` finds one, when it was not asked for, or when its site is `LEFT_OUT`. A site that does
    not answer is on record as well.

    The sites are those of the job, see `sites_of_job`. One at which FLARE has not started it is as
    good as gone. While a task waits, the server's log says for whom, every minute. How it ended is
    in `COLLECTED`, for who keeps the record.

    Filters learn from it which site a task is sent to, see `site_of`. Where the server's
    filters lack one of `guards`, no task is sent, and the run ends.
    """

    guards: frozenset[type[Filter]] = frozenset({SelectHead})

    hears_all = False
    """See `TaskStatus`."""

    _status: TaskStatus | None = None

    def start_controller(self, fl_ctx: FLContext) -> None:
        """Keep FLARE from ending the job for what one site answers."""
        flare_internals.end_for_no_return_code(fl_ctx)
        flare_internals.refuse_what_cannot_be_read(fl_ctx.get_job_id())
        super().start_controller(fl_ctx)

    def current_round(self, fl_ctx: FLContext) -> int | None:
        """The running round; None outside of training."""
        return None

    def read(self, shareable: Shareable) -> SiteResult:
        """A result with return code OK, read once for all parts of the server; here: of nothing."""
        return SiteResult({}, {})

    def fault(self, result: SiteResult, fl_ctx: FLContext) -> str | None:
        """Why a result must be refused; None when it may be passed on."""
        return None

    def prepare(self, client_task: ClientTask, result: SiteResult, fl_ctx: FLContext) -> None:
        """Correct what an accepted result says and FLARE's components would believe."""

    def broadcast_and_wait(
        self,
        task: Task,
        fl_ctx: FLContext,
        targets: list[Client] | list[str] | None = None,
        min_responses: int = 1,
        wait_time_after_min_received: int = 0,
        abort_signal: Signal | None = None,
    ) -> None:
        """Give a task to sites (None: all of the job), and wait as the class says.

        As many results as there are sites are needed where `min_responses` is 0.
        """
        if why := lacking_guards(task.name, self.guards, fl_ctx):
            self.system_panic(why, fl_ctx)
            return
        sites = [getattr(site, "name", site) for site in targets or job_sites.sites_of_job(fl_ctx)]
        round_, needed = self.current_round(fl_ctx), min_responses or len(sites)
        wait = wait_time_after_min_received
        status = TaskStatus(task.name, round_, sites, needed, wait, self.hears_all)
        self._status, self._answered = status, threading.Event()
        task.before_task_sent_cb = self._sending(task.before_task_sent_cb, status)
        task.result_received_cb = self._receiving(task.result_received_cb, status)
        super().broadcast(task, fl_ctx, targets, min_responses=0)  # FLARE's 0: all of them
        if self._wait(task, status, fl_ctx, abort_signal):
            self._conclude(task, status, fl_ctx)

    def _wait(
        self, task: Task, status: TaskStatus, fl_ctx: FLContext, abort_signal: Signal | None
    ) -> bool:
        """Wait until nobody more is coming; whether it was not aborted."""
        began = time.monotonic()
        due = began + _SAY
        while task.completion_status is None:
            if abort_signal and abort_signal.triggered:
                self.cancel_task(task, TaskCompletionStatus.ABORTED)
                return False
            with task.cb_lock:  # FLARE has it while a result is taken
                gone = self._gone(status, fl_ctx)
                if status.verdict(time.monotonic(), gone) != "open":
                    self.cancel_task(task, TaskCompletionStatus.OK)
                    break
                if (now := time.monotonic()) > due:
                    due = now + _SAY
                    self.log_info(fl_ctx, status.waiting(now, began, gone))
            self._answered.wait(_LOOK)
            self._answered.clear()
        return True

    def _sending(self, callback: Callback | None, status: TaskStatus) -> Callback:
        def send(client_task: ClientTask, fl_ctx: FLContext) -> None:
            site = client_task.client.name
            job_sites.set_site(site, fl_ctx)
            reason = job_sites.declaration_fault(fl_ctx, asking=True)
            if reason and site not in status.reasons:  # else at every request
                status.reasons[site] = reason
                asked = headers.REQUEST_REFUSED
                announce(self, fl_ctx, site, status.task, status.round, reason, asked)
            job_sites.hold_to_declaration(fl_ctx)
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
                        reason = "the aggregator did not accept it; the server's log says why"
            except Exception as error:  # whatever a site sends: FLARE would end the round for all
                reason = f"it could not be read ({type(error).__name__}: {error})"
            if reason is None:
                status.accept(site, time.monotonic())
            else:
                status.failed.add(site)
                client_task.result = None
                if fl_ctx.get_prop(headers.REFUSAL) is None:  # else filter or aggregator know why
                    announce(self, fl_ctx, site, status.task, status.round, reason)
            self._answered.set()

        return receive

    def _reason(self, client_task: ClientTask, fl_ctx: FLContext) -> str | None:
        if reason := fl_ctx.get_prop(headers.LEFT_OUT, {}).get(client_task.client.name):
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
        """Refuse what cannot be read, comes after its task was over, or was never asked for."""
        job_sites.set_site(client.name, fl_ctx)
        task, reason = UNKNOWN_TASK, "it came when its task was over, or answers none"
        if (why := result.get_header(headers.UNREADABLE)) and self._status:
            task, reason = self._status.task, f"it could not be read ({why})"
            if client.name in self._status.reasons:  # once, FLARE has it try again
                self._status.failed.add(client.name)
            self._answered.set()
        if fl_ctx.get_prop(headers.REFUSAL) is None:
            announce(self, fl_ctx, client.name, task, self.current_round(fl_ctx), reason)

    def handle_event(self, event_type: str, fl_ctx: FLContext) -> None:
        """Note why results are refused, whoever refuses them."""
        super().handle_event(event_type, fl_ctx)
        if event_type == headers.CONTRIBUTION_REFUSED and self._status:
            refusal = fl_ctx.get_prop(headers.REFUSAL)
            if refusal["task"] == self._status.task:
                self._status.reasons.setdefault(refusal["site"], refusal["reason"])

    def _gone(self, status: TaskStatus, fl_ctx: FLContext) -> dict[str, str]:
        """Site -> why its result will not come any more."""
        ended = filter(self.get_client_disconnect_time, status.outstanding())
        gone: dict[str, str] = job_sites.not_started(fl_ctx) | fl_ctx.get_prop(headers.GONE, {})
        return gone | dict.fromkeys(ended, "its job process has ended")

    def _conclude(self, task: Task, status: TaskStatus, fl_ctx: FLContext) -> None:
        """Announce silent sites, and end the run where too few results were accepted."""
        gone = self._gone(status, fl_ctx)
        sent = {client_task.client.name for client_task in task.client_tasks}
        waited = status.verdict(time.monotonic(), gone) == "enough"
        waited = waited or task.completion_status == TaskCompletionStatus.TIMEOUT
        for site in sorted(status.outstanding()):
            late = "it has not answered in time" if site in sent else "it has not asked for it"
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
    """A workflow, of a dataclass, that gives the sites tasks beside the rounds.

    Runs on the server.

    Attributes:
        min_clients: Accepted results that a task needs; 0: those of all sites of the job.
        wait_seconds: Seconds to wait for the others then.
    """

    min_clients: int
    wait_seconds: int

    def __post_init__(self, **flares: Any) -> None:
        super().__init__(**flares)
        check_non_negative_int("min_clients", self.min_clients)
        check_non_negative_int("wait_seconds", self.wait_seconds)

    def ask(self, task: Task, fl_ctx: FLContext, targets: list[str] | None = None) -> None:
        """Give a task to sites (None: all of the job), and wait."""
        needed, wait, signal = self.min_clients, self.wait_seconds, fl_ctx.get_run_abort_signal()
        self.broadcast_and_wait(task, fl_ctx, targets, needed, wait, signal)
