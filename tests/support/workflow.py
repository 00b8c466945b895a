"""A workflow on FLARE's own task server, in this process; the test plays its sites."""

import threading
from contextlib import contextmanager
from types import SimpleNamespace

from nvflare.apis.client import Client
from nvflare.apis.controller_spec import Task
from nvflare.apis.dxo import DXO, DataKind
from nvflare.apis.fl_constant import FilterKey, FLContextKey
from nvflare.apis.fl_context import FLContextManager
from nvflare.apis.impl.wf_comm_server import WFCommServer
from nvflare.apis.shareable import Shareable, make_reply
from nvflare.apis.signal import Signal

from flare import Engine, context
from surgical_aggregation.server.access.class_filters import SelectHead
from surgical_aggregation.wire import headers

_NAMES = {
    headers.CONTRIBUTION_REFUSED: "refused", headers.SITE_SILENT: "silent",
    headers.REQUEST_REFUSED: "request_refused",
}  # fmt: skip

SECONDS = 60.0
"""What a test waits for at most."""


class ListeningEngine(Engine):
    """An engine that keeps what is announced of sites, and gives its workflow every event."""

    def __init__(self, sites, controller):
        super().__init__(workflow=controller)
        self.sites, self.announced = list(sites), []

    def fire_event(self, event_type, fl_ctx):
        if what := _NAMES.get(event_type):
            refusal = fl_ctx.get_prop(headers.REFUSAL)
            self.announced.append((what, refusal["site"], refusal["reason"]))
        super().fire_event(event_type, fl_ctx)


class RunningTask:
    """A task that a workflow has given to sites.

    It needs some results (`needed`) and waits so many seconds for the others then; `runner` stands
    for FLARE's, `received` is what the workflow does with a result, `meta` is the job's.
    """

    def __init__(self, controller, sites, needed, wait=0, runner=None, received=None, meta=None):
        self.controller, self.runner, self.meta = controller, runner, meta
        self.engine, self.signal = ListeningEngine(sites, controller), Signal()
        self.manager = FLContextManager(engine=self.engine, identity_name="server", job_id="job")
        self.communicator = WFCommServer()
        controller.set_communicator(self.communicator)
        self.fl_ctx = fl_ctx = self.context()
        self.communicator.initialize_run(fl_ctx)
        controller.initialize(fl_ctx)
        data = DXO(DataKind.WEIGHTS, data={}).to_shareable()
        self.task = Task(name="train", data=data, result_received_cb=received)
        given = [self.task, fl_ctx, None, needed, wait, self.signal]
        self.thread = threading.Thread(target=controller.broadcast_and_wait, args=given)
        self.thread.start()
        while self.task.schedule_time is None and self.thread.is_alive():
            self.thread.join(0.01)

    def context(self, site=None, **facts):
        """A context of the run, as FLARE makes it: it does not contain the message's site."""
        facts |= {"engine": self.engine, "manager": self.manager}
        fl_ctx = context(site, authenticated=False, **facts)
        fl_ctx.set_prop(FLContextKey.RUNNER, self.runner, private=True, sticky=False)
        fl_ctx.set_prop(FLContextKey.JOB_META, self.meta, private=True, sticky=False)
        return fl_ctx

    def ask(self, site, **facts):
        """A site asks for its task; returns its id and what the filters know."""
        fl_ctx = self.context(site, **facts)
        _, task_id, _ = self.communicator.process_task_request(Client(site, "token"), fl_ctx)
        return task_id, fl_ctx

    def answer(self, site, result=None, task_id=None, **facts):
        """A site asks for its task and answers it."""
        task_id = task_id or self.ask(site, **facts)[0]
        fl_ctx = self.context(site, **facts)
        result = Shareable() if result is None else result
        fl_ctx.set_prop(FLContextKey.TASK_NAME, "train", private=True, sticky=False)
        client = Client(site, "token")
        self.communicator.process_submission(client, "train", task_id, result, fl_ctx)

    def fail(self, site, code):
        self.answer(site, make_reply(code))

    def is_over(self, seconds=SECONDS):
        self.thread.join(seconds)
        return not self.thread.is_alive()


@contextmanager
def running(controller, sites=("north", "south", "west"), needed=2, **options):
    """A running task, which is ended with the test."""
    task = RunningTask(controller, sites, needed, **options)
    try:
        yield task
    finally:
        task.signal.trigger(True)
        task.is_over()
        task.communicator.finalize_run(task.context())


def runner():
    """Stands for FLARE's runner, as far as workflows touch it."""
    guarded = {f"train{FilterKey.DELIMITER}{FilterKey.OUT}": [SelectHead()]}
    config = SimpleNamespace(task_data_filters=guarded, task_result_filters={})
    return SimpleNamespace(ABORT_RETURN_CODES=["UNSAFE_JOB"], config=config)
