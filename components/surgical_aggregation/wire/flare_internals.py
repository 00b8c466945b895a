"""Internals of FLARE and TensorBoard that the project needs, each with the version that has it.

Tests fail where an installed version does not have it any more.
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

from surgical_aggregation import FLARE, FlareError
from surgical_aggregation.wire.headers import UNREADABLE

_NEEDED = (
    "app_common.app_constant:AppConstants.METRICS_SELECTION_INFO",
    "private.fed.server.server_runner:ServerRunner.ABORT_RETURN_CODES",
    "fuel.f3.streaming.stream_utils:callback_thread_pool",
    "fuel.f3.streaming.stream_utils:CALLBACK_THREAD_POOL_SIZE",
    "fuel.utils.fobs.dots:NUMPY_DOWNLOAD",
)
"""Names of FLARE that would be missed, or set in vain, in the middle of a run."""


def check_names() -> None:
    """Refuse a FLARE that lacks a name which is needed while a job runs.

    Raises:
        FlareError: It lacks one; the message names it.
    """
    for name in _NEEDED:
        try:
            resolve_name(f"nvflare.{name}")
        except (ImportError, AttributeError) as error:
            raise FlareError(
                f"the installed nvflare lacks {name}. Install nvflare{FLARE} anew."
            ) from error


def plan_rounds(workflow: Any, first: int, number: int) -> None:
    """Set a ScatterAndGather's first round and number of rounds, before or while it runs.

    FLARE 2.9 takes both in the constructor alone, and looks at `_start_round` and `_num_rounds`
    before every round.
    """
    workflow._start_round = first
    workflow._num_rounds = number


def need_results(workflow: Any, number: int) -> None:
    """Set how many results a ScatterAndGather asks `broadcast_and_wait` for; 0 as well.

    FLARE 2.9 takes no 0 in the constructor, and has the number in its attribute `_min_clients`.
    """
    workflow._min_clients = number


def end_for_no_return_code(fl_ctx: FLContext) -> None:
    """Keep FLARE from ending the job for the return code of one site's result.

    FLARE 2.9's server runner has UNSAFE_JOB, TASK_UNKNOWN and RUN_MISMATCH in its attribute
    `ABORT_RETURN_CODES`.
    """
    if runner := fl_ctx.get_prop(FLContextKey.RUNNER):
        runner.ABORT_RETURN_CODES = []


def refuse_what_cannot_be_read(job: str) -> None:
    """Have this process, of a job, go on where it cannot read a site's result.

    FLARE 2.9's cell ends the server's job process then, and so the job of all sites. Here the
    workflow gets a result in its place, which says why in `UNREADABLE`; of which task, only what
    could not be read says.
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


def ask_no_sooner(seconds: float, fl_ctx: FLContext) -> None:
    """Have waiting sites ask for a task after so many seconds, where they would ask sooner.

    FLARE 2.9's server runner reads `config.task_request_interval` whenever it answers a site.
    """
    if runner := fl_ctx.get_prop(FLContextKey.RUNNER):
        config = runner.config
        config.task_request_interval = max(config.task_request_interval, seconds)


def end_after_this_workflow(fl_ctx: FLContext) -> None:
    """Have the job end well when the running workflow is over, whatever comes behind it.

    FLARE 2.9's server runner takes its `config.workflows` one by one, by `current_wf_index`.
    """
    if runner := fl_ctx.get_prop(FLContextKey.RUNNER):
        del runner.config.workflows[runner.current_wf_index + 1 :]


def result_filters(task: str, fl_ctx: FLContext) -> list[Filter]:
    """The filters that a site's result passes, in order: of its own scope, then of the job.

    FLARE 2.9's client runner has the job's in its attribute `task_result_filters`.
    """
    runner = fl_ctx.get_prop(FLContextKey.RUNNER)
    of_job = runner.task_result_filters if runner else {}
    found: list[Filter] = get_filters("task_result_filters", fl_ctx, of_job, task, FilterKey.OUT)
    return found


def server_filters(task: str, fl_ctx: FLContext) -> list[Filter] | None:
    """What a task's data pass on the way to a site, and its result at the server.

    FLARE 2.9's server runner has the job's filters in its `config`. None outside of a run.
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
    """The job's workflows in order, at the server; none outside of a run.

    FLARE 2.9's server runner has them in its `config`.
    """
    config = getattr(fl_ctx.get_prop(FLContextKey.RUNNER), "config", None)
    return [workflow.controller for workflow in getattr(config, "workflows", ())]


def site_of_task(fl_ctx: FLContext) -> str:
    """Name of the site that has the context's task, under any workflow; empty where none is known.

    FLARE 2.9's server runner has the running workflow in `current_wf`, whose communicator finds a
    task by the id that it gave it.
    """
    runner, task = map(fl_ctx.get_prop, (FLContextKey.RUNNER, FLContextKey.TASK_ID))
    workflow = getattr(runner, "current_wf", None)
    if not task or workflow is None:
        return ""
    given = workflow.controller.communicator.process_task_check(task, fl_ctx)
    return given.client.name if given else ""


class ReceivedArrays(Protocol):
    """Takes arrays as they come, by name, and has them all at the end."""

    def add(self, arrays: dict[str, Any]) -> None:
        """Take some."""

    def arrays(self) -> dict[str, Any]:
        """All that were taken."""


def receive_arrays(taker: Callable[[], ReceivedArrays]) -> None:
    """Have the arrays of each message that this process receives taken as they come.

    FLARE 2.9 fetches arrays in pieces of 2 MB. Its `download_arrays` has the argument
    `arrays_received_cb`, which its decomposer does not use: that keeps whole messages in memory.
    """
    numpy_decomposers.register()

    def download(fobs_ctx: Any = None, **arguments: Any) -> tuple[str | None, Any]:
        received = taker()
        error, _ = download_arrays(arrays_received_cb=received.add, **arguments)
        arrays = received.arrays()  # also of half a message, so that its file is closed
        return error, None if error else arrays

    get_dot_handler(dots.NUMPY_DOWNLOAD).download = download


def receive_results_of(sites: int) -> None:
    """Have this process receive results of so many sites at once.

    FLARE 2.9 reads a result in one of 64 threads, and the pieces that it is waiting for in the same
    64: of 64 results that come at once none would ever be read.
    """
    pool = stream_utils.callback_thread_pool
    pool._max_workers = max(pool._max_workers, stream_utils.CALLBACK_THREAD_POOL_SIZE + sites)


def forget_sent_messages() -> None:
    """Have this process forget a message once it is sent.

    FLARE 2.9's `TxTask` and its future refer to each other, so what was sent, in pieces of 2 MB and
    buffers of 1, would stay in memory until Python next looks for cycles among all objects.
    """
    stop = TxTask.stop
    if hasattr(stop, "__wrapped__"):  # done already
        return

    @wraps(stop)
    def stop_and_forget(task: TxTask, error: Any = None, notify: bool = True) -> None:
        stop(task, error, notify)
        if task.stopped and error is None:  # all of it was sent, so nobody reads them any more
            task.stream = task.buffer = task.direct_buf = None

    TxTask.stop = stop_and_forget


def export_defaults(component: Any, arguments: Iterable[str]) -> None:
    """Have an exported job name these arguments, though they equal today's defaults.

    FLARE 2.9's FedJob names those in `_always_serialize_args`.
    """
    component._always_serialize_args = tuple(arguments)


def tensorboard_without_tensorflow() -> None:
    """Keep TensorBoard from importing TensorFlow where that is installed: 5 seconds and 600 MB.

    TensorBoard 2.18 to 2.20 use their own file functions where a module `tensorboard.compat.notf`
    exists. FLARE 2.9 writes events with TensorBoard.
    """
    sys.modules.setdefault("tensorboard.compat.notf", ModuleType("notf"))
