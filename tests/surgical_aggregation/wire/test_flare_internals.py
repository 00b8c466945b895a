"""FLARE and TensorBoard as installed still have what the project needs beyond their promises."""

import inspect
import subprocess
import sys
import threading
from concurrent.futures import wait
from contextlib import nullcontext
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from nvflare.apis.event_type import EventType
from nvflare.apis.fl_constant import FLContextKey
from nvflare.app_common.workflows.scatter_and_gather import ScatterAndGather
from nvflare.fuel.f3.cellnet import cell
from nvflare.fuel.f3.message import Message
from nvflare.fuel.f3.streaming import stream_utils
from nvflare.fuel.f3.streaming.blob_streamer import BlobStream
from nvflare.fuel.f3.streaming.byte_streamer import TxTask
from nvflare.fuel.f3.streaming.stream_const import StreamHeaderKey
from nvflare.fuel.f3.streaming.stream_types import StreamError
from nvflare.private.fed.server.server_runner import ServerRunner, ServerRunnerConfig

from flare import Engine, context
from surgical_aggregation.server.access.job_sites import site_of
from surgical_aggregation.server.models.aggregator import SurgicalAggregator
from surgical_aggregation.server.records.run_record import RunRecord
from surgical_aggregation.server.workflows.model_refit import ModelRefit
from surgical_aggregation.site.executor import KerasExecutor
from surgical_aggregation.site.local_notes import CANNOT_PARTICIPATE
from surgical_aggregation.wire import flare_internals
from surgical_aggregation.wire.headers import UNREADABLE
from workflow import runner, running

IMPORT = "import surgical_aggregation.server"
START = "from cxr_study.cli import start; start()"


@pytest.mark.parametrize(("version", "program", "refused"), [
    ("2.8.3", IMPORT, True), ("2.9.0", IMPORT, False), ("2.9.7rc1", IMPORT, False),
    ("3.0.0", IMPORT, True), ("2.8.3", START, True),
])  # fmt: skip
def test_another_flare_is_refused_by_name_at_the_start(tmp_path, version, program, refused):
    metadata = tmp_path / f"nvflare-{version}.dist-info/METADATA"
    metadata.parent.mkdir()
    metadata.write_text(f"Metadata-Version: 2.1\nName: nvflare\nVersion: {version}\n")
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); {program}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    reason = f"needs nvflare >=2.9,<2.10; got {version}. At the server, every site and here: pip i"
    assert (reason in done.stderr) == refused == bool(done.returncode), done.stderr
    assert program == IMPORT or "Traceback" not in done.stderr


@pytest.mark.parametrize("name", ["app_common.app_constant:AppConstants.NO", "no_module:X"])
def test_a_name_that_flare_lacks_keeps_a_site_out_and_ends_a_run(monkeypatch, panics, name):
    flare_internals.check_names()
    monkeypatch.setattr(flare_internals, "_NEEDED", (name,))
    engine = Engine()
    for component in (RunRecord(), KerasExecutor()):
        component.handle_event(EventType.START_RUN, context(engine=engine))
    for text in (*panics, engine.notes()):
        assert f"the installed nvflare lacks {name}. Reinstall nvflare>=2.9" in text
    assert len(panics) == 1 and CANNOT_PARTICIPATE in engine.notes()


def test_flare_looks_at_a_workflows_rounds_before_every_one():
    workflow = ScatterAndGather(num_rounds=1, start_round=2)
    names = {"_start_round", "_num_rounds"}
    assert names < vars(workflow).keys()
    assert names < {*ScatterAndGather.control_flow.__code__.co_names}
    flare_internals.plan_rounds(workflow, 5, 3)
    assert (workflow._start_round, workflow._num_rounds) == (5, 3)


def test_flares_runner_asks_for_the_return_codes_that_end_a_job():
    assert set(ServerRunner.ABORT_RETURN_CODES) >= {"UNSAFE_JOB", "TASK_UNKNOWN"}
    runner = ServerRunner.__new__(ServerRunner)
    flare_internals.ignore_abort_return_codes(context(props={FLContextKey.RUNNER: runner}))
    assert runner.ABORT_RETURN_CODES == [] != ServerRunner.ABORT_RETURN_CODES


@pytest.mark.parametrize("spared", [True, False])
def test_tensorboard_imports_no_tensorflow_where_its_own_switch_is_there(spared):
    switch = "flare_internals.tensorboard_without_tensorflow();" if spared else ""
    code = (
        "import sys, types; fake = types.ModuleType('tensorflow'); fake.__version__ = '2';"
        "sys.modules['tensorflow'] = fake;"
        f"from surgical_aggregation.wire import flare_internals; {switch}"
        "from tensorboard.compat import tf; print(tf.__version__)"
    )
    program = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert program.stdout.strip() == ("stub" if spared else "2"), program.stderr


@pytest.mark.parametrize("reliable", [False, True])
def test_what_was_sent_is_forgotten_and_what_failed_is_not(monkeypatch, reliable):
    monkeypatch.setattr(TxTask, "stop", TxTask.stop)
    for _ in range(2):
        flare_internals.forget_sent_messages()
    assert not hasattr(TxTask.stop.__wrapped__, "__wrapped__")
    content, sent = bytes(range(250)), []

    def send(channel, topic, target, message, **how):
        sent.append(bytes(message.payload))
        return {}

    def started():
        own = SimpleNamespace(my_info=SimpleNamespace(fqcn="server"), fire_and_forget=send)
        stream = BlobStream(content, {})
        return TxTask(own, 100, "a", "b", "site", {}, stream, reliable, False, False)

    task = started()
    task.send_loop()
    assert b"".join(sent) == content
    if reliable:  # it may have to be sent again
        assert task.stream is not None
        ack = Message({StreamHeaderKey.SEQUENCE: 2, StreamHeaderKey.OFFSET: 250}, None)
        task.handle_ack(ack)
    assert task.stream_future.result(timeout=1) == 250
    assert task.stopped and task.stream is task.buffer is None
    assert task.stream_future.task_handle is task  # which is why it would have stayed
    failed = started()
    failed.stop(StreamError("cut off"))
    assert failed.stopped and failed.stream is not None


@pytest.mark.parametrize("known", [True, False])
def test_more_results_at_once_than_flare_has_threads_are_all_read(monkeypatch, known):
    """As in FLARE: a thread waits for a chunk, which another thread of the pool reads."""
    pool = stream_utils.CheckedExecutor(stream_utils.CALLBACK_THREAD_POOL_SIZE)
    monkeypatch.setattr(stream_utils, "callback_thread_pool", pool)
    engine, all_there, seconds = Engine(), threading.Barrier(80), 30 if known else 1
    engine.sites = [f"site-{n}" for n in range(80 if known else 0)]
    SurgicalAggregator().handle_event(EventType.START_RUN, context(engine=engine))

    def result():
        all_there.wait(seconds)
        return pool.submit(int, 1).result(seconds)

    reading = [pool.submit(result) for _ in range(80)]
    wait(reading, timeout=60)
    read = [one.result() for one in reading if not one.exception()]
    assert read == ([1] * 80 if known else [])
    pool.shutdown()


@pytest.mark.parametrize("component", [SurgicalAggregator(), KerasExecutor()])
def test_server_and_sites_forget_what_they_have_sent(monkeypatch, component):
    forget = Mock()
    monkeypatch.setattr(flare_internals, "forget_sent_messages", forget)
    component.handle_event(EventType.START_RUN, context())
    forget.assert_called_once_with()


@pytest.mark.parametrize("topic", ["submit_update", "get_task"])
def test_a_result_that_cannot_be_read_does_not_end_the_servers_process(monkeypatch, topic):
    decode, ended, came = cell.decode_payload, [], []
    monkeypatch.setattr(cell, "decode_payload", getattr(decode, "__wrapped__", decode))
    monkeypatch.setattr(cell.os, "_exit", ended.append)
    own = dict(decode_pass_through_channels=(), decode_pass_through_topics=())
    own = SimpleNamespace(**own, fqcn="server.job", get_fobs_context=lambda props: {})
    headers = {StreamHeaderKey.CHANNEL: "server_command", StreamHeaderKey.TOPIC: topic}
    headers[StreamHeaderKey.PAYLOAD_ENCODING] = "fobs"
    for _ in range(2):
        flare_internals.refuse_unreadable_results("job")
    assert not hasattr(cell.decode_payload.__wrapped__, "__wrapped__")
    message = SimpleNamespace(headers=headers, result=lambda: b"no message")
    with pytest.raises(RuntimeError, match="main") if topic == "get_task" else nullcontext():
        cell.Adapter(came.append, own, own).call(message)
    assert len(came) == (topic == "submit_update") and not ended  # which FLARE does else
    for result in came:
        assert "expect main" in result.payload.get_header(UNREADABLE)
        assert result.payload.get_return_code() == "EXECUTION_RESULT_ERROR"
        assert result.payload.get_peer_context().get_job_id() == "job"


def test_a_tasks_site_is_found_by_its_id_under_any_workflow():
    """Also if the message lacks it, as for `SelectHead` with a task of FLARE's FedAvg."""
    with running(ModelRefit(), sites=("north", "south")) as task:
        of = SimpleNamespace(controller=task.controller)
        task.runner = SimpleNamespace(current_wf=of, config=runner().config)
        for site in ("north", "south"):
            (task_id, _), fl_ctx = task.ask(site), task.context()
            assert site_of(fl_ctx) == ""
            fl_ctx.set_prop(FLContextKey.TASK_ID, task_id, private=True, sticky=False)
            assert site_of(fl_ctx) == site
        fl_ctx.set_prop(FLContextKey.TASK_ID, "not given", private=True, sticky=False)
        assert site_of(fl_ctx) == ""
    source = inspect.getsource(ServerRunner)
    assert "self.current_wf" in source and "FLContextKey.TASK_ID" in source
    assert list(inspect.signature(ServerRunnerConfig).parameters)[2] == "workflows"
