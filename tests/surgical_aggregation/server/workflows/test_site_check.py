"""What the server finds before any site is asked; the sites: tests/simulator/test_dry_run.py."""

from types import SimpleNamespace

import pytest
from nvflare.apis.client import Client
from nvflare.apis.dxo import DXO, DataKind
from nvflare.apis.shareable import make_reply
from nvflare.apis.signal import Signal
from nvflare.app_common.abstract.model_locator import ModelLocator

import tiny_job
from flare import Engine, context
from surgical_aggregation.checkpoints.checkpoint import load
from surgical_aggregation.server.models.persistor import CheckpointPersistor
from surgical_aggregation.server.workflows import site_check
from surgical_aggregation.server.workflows.site_check import SiteCheck
from surgical_aggregation.wire import headers

SITES = ("north", "south")


@pytest.fixture
def flow(tmp_path, monkeypatch, panics):
    """Run the workflow with so much free disk; returns the tasks that it sent."""

    def flow(free, of=CheckpointPersistor, aborted=False):
        body = tiny_job.initial_body(tmp_path / "body.npz")
        monkeypatch.setattr(of, "path", lambda self, fl_ctx: body, raising=False)
        disk = SimpleNamespace(free=free)
        monkeypatch.setattr(site_check.shutil, "disk_usage", lambda path: disk)
        engine, workflow, given = Engine(model=of.__new__(of)), SiteCheck("model"), []
        engine.sites = SITES
        monkeypatch.setattr(workflow, "broadcast_and_wait", lambda task, *_: given.append(task))
        signal = Signal()
        if aborted:
            signal.trigger(True)
        workflow.control_flow(signal, context(engine=engine))
        return given

    return flow


SIZE = 4 * (3 * 4 + 5 * 4)  # of the tiny body
NEED = (len(SITES) + site_check._MODELS) * SIZE


@pytest.mark.parametrize(("free", "of", "asks"), [
    (NEED, CheckpointPersistor, True), (NEED - 1, CheckpointPersistor, False),
    (0, ModelLocator, True),
])  # fmt: skip
def test_no_site_is_asked_without_room_for_a_round_if_there_is_one(flow, panics, free, of, asks):
    assert len(flow(free, of)) == asks
    reason = "the server needs 0.0 MB of disk space for the results of 2 sites"
    assert [panic[: len(reason)] for panic in panics] == [reason] * (not asks)


def test_a_run_that_has_ended_at_its_start_asks_nobody(flow, panics):
    assert flow(NEED, aborted=True) == [] == panics


def test_the_question_has_names_and_shapes_of_the_body_alone(flow, tmp_path):
    (task,) = flow(NEED)
    body = load(tmp_path / "body.npz").variables
    shapes = {path: list(value.shape) for path, value in body.items()}
    assert task.data["DXO"]["data"] == {"body": shapes, "network": {}, "trains": True}


@pytest.mark.parametrize(("data", "cannot", "disk"), [
    ({headers.CANNOT: "no\n2026 \x1b[2J", headers.FREE_DISK: 5}, r"no\n2026 \x1b[2J", 5),
    ({headers.CANNOT: 5, headers.FREE_DISK: "5"}, None, None), (7, None, None),
])  # fmt: skip
def test_an_answer_of_whatever_kind_is_safe_for_a_log(data, cannot, disk):
    reply = site_check._parsed_reply(DXO(DataKind.APP_DEFINED, data=data).to_shareable())
    assert (reply[headers.CANNOT], reply[headers.FREE_DISK]) == (cannot, disk)


def test_the_return_code_of_a_reply_is_safe_for_the_record():
    fl_ctx = context("west", ["Edema"])
    task = SimpleNamespace(result=make_reply("\x1b[2J\nnorth can"), client=Client("west", "token"))
    reason = SiteCheck("model")._reason(task, fl_ctx)
    assert reason.isprintable() and fl_ctx.get_prop(headers.LEFT_OUT) == {"west": reason}


def test_a_model_that_the_job_does_not_have_is_named(panics):
    SiteCheck("modle").control_flow(Signal(), context(engine=Engine(model=None)))
    assert panics == ["the job has no component 'modle'. Check model_id."]
