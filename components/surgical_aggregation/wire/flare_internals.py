"""Internals of FLARE and TensorBoard that the project uses, each with the version that has it.

Tests fail if an installed version no longer has one.
"""

import sys
from collections.abc import Callable, Iterable
from functools import wraps
from pkgutil import resolve_name
from types import ModuleType
from typing import Any, Protocol

from nvflare.apis.filter import Filter
from nvflare.apis.fl_constant import FilterKey, FLContextKey, ReturnCode, ServerCommandNames
from nvflare.apis.fl_context import FLContext
from nvflare.apis.impl.controller import Controller
from nvflare.apis.job_def import JobMetaKey
from nvflare.apis.shareable import make_reply
from nvflare.apis.utils.task_utils import get_filters
from nvflare.app_common.decomposers import numpy_decomposers
from nvflare.app_common.np.np_downloader import download_arrays
from nvflare.fuel.f3.cellnet import cell
from nvflare.fuel.f3.message import Message
from nvflare.fuel.f3.streaming import stream_utils
from nvflare.fuel.f3.streaming.byte_streamer import TxTask
from nvflare.fuel.f3.streaming.stream_const import StreamHeaderKey
from nvflare.fuel.utils.fobs import dots, get_dot_handler
from nvflare.private.fed.utils.fed_utils import extract_participants

from surgical_aggregation import FLARE, FlareError
from surgical_aggregation.wire.headers import UNREADABLE

_NEEDED = (
    "app_common.app_constant:AppConstants.METRICS_SELECTION_INFO",
    "private.fed.server.server_runner:ServerRunner.ABORT_RETURN_CODES",
    "fuel.f3.cellnet.core_cell:CoreCell.add_incoming_request_filter",
    "private.defs:SysCommandTopic.SHELL",
    "fuel.f3.streaming.stream_utils:callback_thread_pool",
    "fuel.f3.streaming.stream_utils:CALLBACK_THREAD_POOL_SIZE",
    "fuel.utils.fobs.dots:NUMPY_DOWNLOAD",
)
"""Names of FLARE whose absence would show, or stay unnoticed, only in the middle of a run."""


def check_names() -> None:
    """Check that FLARE has the names that are used while a job runs.

    Raises:
        FlareError: It lacks one; the message names it.
    """
    for name in _NEEDED:
        try:
            resolve_name(f"nvflare.{name}")
        except (ImportError, AttributeError) as error:
            raise FlareError(
                f"the installed nvflare lacks {name}. Reinstall nvflare{FLARE}."
            ) from error


def plan_rounds(workflow: Any, first: int, number: int) -> None:
    """Set a ScatterAndGather's first round and number of rounds, before or while it runs.

    FLARE 2.9 accepts both only in the constructor, and reads `_start_round` and `_num_rounds`
    before every round.
    """
    workflow._start_round = first
    workflow._num_rounds = number


def set_min_results(workflow: Any, number: int) -> None:
    """Set how many results a ScatterAndGather requests from `broadcast_and_wait`; may be 0.

    FLARE 2.9 refuses 0 in the constructor, and keeps the number in `_min_clients`.
    """
    workflow._min_clients = number


def ignore_abort_return_codes(fl_ctx: FLContext) -> None:
    """Keep FLARE from ending the job because of the return code of one site's result.

    FLARE 2.9's server runner does so for UNSAFE_JOB, TASK_UNKNOWN and RUN_MISMATCH, its attribute
    `ABORT_RETURN_CODES`.
    """
    if runner := fl_ctx.get_prop(FLContextKey.RUNNER):
        runner.ABORT_RETURN_CODES = []


def refuse_unreadable_results(job: str) -> None:
    """Keep the server's job process running if it cannot decode a site's result.

    FLARE 2.9's cell would end the process, and so the job for all sites. Here the workflow receives
    an error reply whose header `UNREADABLE` has the reason. Its task is unknown, since the task's
    name is in the message that could not be decoded.

    Args:
        job: Id of the running job.
    """
    decode = getattr(cell.decode_payload, "__wrapped__", cell.decode_payload)

    @wraps(decode)
    def decode_or_refuse(message: Message, *args: Any, **options: Any) -> None:
        try:
            decode(message, *args, **options)
        except Exception as error:  # whatever one site sends
            if message.get_header(StreamHeaderKey.TOPIC) != ServerCommandNames.SUBMIT_UPDATE:
                raise
            peer = FLContext()
            peer.put(FLContextKey.CURRENT_RUN, job, private=False, sticky=False)
            why = f"{type(error).__name__}: {error}"
            message.payload = make_reply(ReturnCode.EXECUTION_RESULT_ERROR, {UNREADABLE: why})
            message.payload.set_header(FLContextKey.TASK_NAME, "unknown")
            message.payload.set_peer_context(peer)

    cell.decode_payload = decode_or_refuse


def raise_request_interval(seconds: float, fl_ctx: FLContext) -> None:
    """Raise the interval between a waiting site's task requests to at least `seconds`.

    FLARE 2.9's server runner reads `config.task_request_interval` whenever it replies to a site.
    """
    if runner := fl_ctx.get_prop(FLContextKey.RUNNER):
        config = runner.config
        config.task_request_interval = max(config.task_request_interval, seconds)


def end_after_this_workflow(fl_ctx: FLContext) -> None:
    """End the job successfully after the running workflow, and skip the remaining ones.

    FLARE 2.9's server runner runs its `config.workflows` in order, by `current_wf_index`.
    """
    if runner := fl_ctx.get_prop(FLContextKey.RUNNER):
        del runner.config.workflows[runner.current_wf_index + 1 :]


def result_filters(task: str, fl_ctx: FLContext) -> list[Filter]:
    """The filters of a site's result, in order: those of its own scope, then the job's.

    FLARE 2.9's client runner has the job's in its attribute `task_result_filters`.
    """
    runner = fl_ctx.get_prop(FLContextKey.RUNNER)
    of_job = runner.task_result_filters if runner else {}
    return get_filters("task_result_filters", fl_ctx, of_job, task, FilterKey.OUT)


def server_filters(task: str, fl_ctx: FLContext) -> list[Filter] | None:
    """The server's filters of a task's data, then of its result; None outside of a run.

    FLARE 2.9's server runner has the job's filters in its `config`.
    """
    if not (runner := fl_ctx.get_prop(FLContextKey.RUNNER)):
        return None
    return [
        passed
        for kind, way in (("data", FilterKey.OUT), ("result", FilterKey.IN))
        for name in (f"task_{kind}_filters",)
        for passed in get_filters(name, fl_ctx, getattr(runner.config, name), task, way)
    ]


def workflows(fl_ctx: FLContext) -> list[Controller]:
    """The job's workflows in order, at the server; empty outside of a run.

    FLARE 2.9's server runner has them in its `config`.
    """
    config = getattr(fl_ctx.get_prop(FLContextKey.RUNNER), "config", None)
    return [workflow.controller for workflow in getattr(config, "workflows", ())]


def participants(fl_ctx: FLContext) -> set[str]:
    """Names in `deploy_map` of the running job's meta, in any form that FLARE 2.9 accepts."""
    deployed = (fl_ctx.get_prop(FLContextKey.JOB_META) or {}).get(JobMetaKey.DEPLOY_MAP.value, {})
    return {name for entry in deployed.values() for name in extract_participants(entry)}


def site_of_task(fl_ctx: FLContext) -> str:
    """Name of the site that holds the context's task, under any workflow; empty: unknown.

    FLARE 2.9's server runner has the running workflow in `current_wf`, whose communicator finds a
    task by its id.
    """
    runner, task = map(fl_ctx.get_prop, (FLContextKey.RUNNER, FLContextKey.TASK_ID))
    workflow = getattr(runner, "current_wf", None)
    if not task or workflow is None:
        return ""
    given = workflow.controller.communicator.process_task_check(task, fl_ctx)
    return given.client.name if given else ""


class ReceivedArrays(Protocol):
    """A store for the arrays of one message."""

    def add(self, arrays: dict[str, Any]) -> None:
        """Add arrays, by name."""

    def arrays(self) -> dict[str, Any]:
        """All arrays that were added."""


def receive_arrays(make_store: Callable[[], ReceivedArrays]) -> None:
    """Store the arrays of each message that this process receives as they arrive.

    FLARE 2.9 fetches arrays in chunks of 2 MB. Its `download_arrays` has the argument
    `arrays_received_cb`, but its decomposer does not use it and keeps whole messages in memory.

    Args:
        make_store: Makes the store of one message.
    """
    numpy_decomposers.register()

    def download(fobs_ctx: Any = None, **arguments: Any) -> tuple[str | None, Any]:
        received = make_store()
        error, _ = download_arrays(arrays_received_cb=received.add, **arguments)
        arrays = received.arrays()  # also of an incomplete message, to close its file
        return error, None if error else arrays

    get_dot_handler(dots.NUMPY_DOWNLOAD).download = download


def receive_results_of(sites: int) -> None:
    """Let this process receive the results of so many sites at once.

    FLARE 2.9 reads results, and the chunks that they wait for, in one pool of 64 threads: 64
    results at once would deadlock.
    """
    pool = stream_utils.callback_thread_pool
    pool._max_workers = max(pool._max_workers, stream_utils.CALLBACK_THREAD_POOL_SIZE + sites)


def forget_sent_messages() -> None:
    """Free the memory of a message as soon as this process has sent it.

    FLARE 2.9's `TxTask` and its future refer to each other, so the chunks sent (2 MB, with buffers
    of 1 MB) would stay in memory until Python's next full garbage collection.
    """
    stop = TxTask.stop
    if hasattr(stop, "__wrapped__"):  # done already
        return

    @wraps(stop)
    def stop_and_forget(task: TxTask, error: Any = None, notify: bool = True) -> None:
        stop(task, error, notify)
        if task.stopped and error is None:  # all of it was sent
            task.stream = task.buffer = task.direct_buf = None

    TxTask.stop = stop_and_forget


def export_defaults(component: Any, arguments: Iterable[str]) -> None:
    """Write these arguments into an exported job even if they equal the defaults.

    FLARE 2.9's FedJob does so for those in `_always_serialize_args`.
    """
    component._always_serialize_args = tuple(arguments)


def tensorboard_without_tensorflow() -> None:
    """Keep TensorBoard from importing TensorFlow if installed, which takes 5 s and 600 MB.

    TensorBoard 2.18 to 2.20 use their own file functions where a module `tensorboard.compat.notf`
    exists. FLARE 2.9 writes events with TensorBoard.
    """
    sys.modules.setdefault("tensorboard.compat.notf", ModuleType("notf"))
