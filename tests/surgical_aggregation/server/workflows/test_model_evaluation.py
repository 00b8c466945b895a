import threading

import pytest
from nvflare.apis.client import Client
from nvflare.apis.dxo import DXO, DataKind
from nvflare.apis.fl_component import FLComponent
from nvflare.apis.fl_constant import FLContextKey, ReservedKey, ReturnCode
from nvflare.apis.impl.wf_comm_server import WFCommServer
from nvflare.apis.shareable import make_reply
from nvflare.apis.signal import Signal
from nvflare.app_common.app_constant import AppConstants
from nvflare.app_common.app_event_type import AppEventType

from flare import context
from surgical_aggregation.server.access.site_identity import site_of
from surgical_aggregation.server.models.evaluated_model import OneModelLocator
from surgical_aggregation.server.workflows import collecting_controller
from surgical_aggregation.server.workflows.model_evaluation import ModelEvaluation
from surgical_aggregation.wire.headers import MODEL_HAS_HEAD
from workflow import ListeningEngine

SITES = {"north": ["Edema", "Mass"], "south": ["Edema"]}


class Locator(OneModelLocator):
    """Has a model without variables."""

    def path(self, fl_ctx):
        raise NotImplementedError

    def get_model_names(self, fl_ctx):
        return [self.model]

    def locate_model(self, model_name, fl_ctx):
        return DXO(DataKind.WEIGHTS, data={})


class Evaluation(FLComponent):
    """A running evaluation whose sites the test plays, and what is heard of their results."""

    def __init__(self, folder, **settings):
        super().__init__()
        self.controller = ModelEvaluation(**settings)
        self.engine = ListeningEngine(SITES, self.controller)
        self.engine.folder = folder
        self.engine.components |= {"model": Locator("best"), "test": self}
        self.heard, self.signal = {}, Signal()
        self.communicator = WFCommServer()
        self.controller.set_communicator(self.communicator)
        fl_ctx = self.context()
        self.communicator.initialize_run(fl_ctx)
        self.controller.initialize(fl_ctx)
        self.thread = threading.Thread(
            target=self.controller.control_flow, args=[self.signal, fl_ctx]
        )
        self.thread.start()
        while not self.communicator._tasks and self.thread.is_alive():
            self.thread.join(0.01)

    def handle_event(self, event_type, fl_ctx):
        if event_type == AppEventType.VALIDATION_RESULT_RECEIVED:
            self.heard[site_of(fl_ctx)] = fl_ctx.get_prop(AppConstants.VALIDATION_RESULT)

    def context(self, site=None, **said):
        fl_ctx = context(site, engine=self.engine, **said)
        fl_ctx.put(ReservedKey.RUN_ABORT_SIGNAL, self.signal, private=True, sticky=False)
        return fl_ctx

    def answer(self, site, data=None, result=None, task_id=None, declares=None):
        declares = SITES[site] if declares is None else declares
        fl_ctx = self.context(site, classes=declares)
        client = Client(site, "token")
        if task_id is None:
            _, task_id, _ = self.communicator.process_task_request(client, fl_ctx)
        if result is None:
            result = DXO(DataKind.METRICS, data=data or {}).to_shareable()
        fl_ctx = self.context(site, classes=declares)
        fl_ctx.set_prop(MODEL_HAS_HEAD, True, private=True, sticky=True)
        fl_ctx.set_prop(FLContextKey.TASK_NAME, "test", private=True, sticky=False)
        self.communicator.process_submission(client, "test", task_id, result, fl_ctx)

    def is_over(self, seconds=10.0):
        self.thread.join(seconds)
        return not self.thread.is_alive()


@pytest.fixture
def start(tmp_path, monkeypatch, panics):
    monkeypatch.setattr(collecting_controller, "_LOOK", 0.02)
    running = []

    def start(**settings):
        evaluation = Evaluation(tmp_path, **settings)
        running.append(evaluation)
        return evaluation

    yield start
    for evaluation in running:
        evaluation.signal.trigger(True)
        assert evaluation.is_over()
        evaluation.communicator.finalize_run(evaluation.context())


GOOD = {"bce": 0.3, "bce/Edema": 0.3, "auroc": 1.0, "auroc/Edema": 1.0, "images": 7.0}


@pytest.mark.parametrize("settings", [{"min_clients": 0}, {"wait_seconds": -1}])
def test_what_could_never_end_is_refused(settings):
    with pytest.raises(ValueError, match=next(iter(settings))):
        ModelEvaluation(**settings)


def test_the_others_are_waited_for_no_longer_than_said(start, panics):
    evaluation = start(min_clients=1, wait_seconds=2)
    evaluation.answer("north", GOOD)
    assert not evaluation.is_over(1.5)  # FLARE looks for the end of the task every half second
    assert evaluation.is_over() and panics == [] and list(evaluation.heard) == ["north"]


def test_too_few_end_the_run_with_the_reasons(start, panics):
    evaluation = start(min_clients=2, wait_seconds=600)
    evaluation.answer("north", GOOD)
    evaluation.answer("south", result=make_reply(ReturnCode.EXECUTION_EXCEPTION))
    assert evaluation.is_over()
    assert panics[0].startswith("task 'test' needs accepted results of 2 of the 2 sites; got 1")


METRICS, WEIGHTS = DataKind.METRICS, DataKind.WEIGHTS


@pytest.mark.parametrize(
    ("data", "kind", "declares", "reason"),
    [
        ({("bce", 1): 0.3}, METRICS, None, "there is no metric ('bce', 1)"),
        ({"bce": "low"}, METRICS, None, "'bce' must be a number"),
        ({"bce/Mass": 0.3}, METRICS, None, "there is no metric 'bce/Mass'"),
        ({"bce/Fracture": 0.5}, METRICS, (), "there is no metric 'bce/Fracture'"),
        ({}, WEIGHTS, None, "it must carry metrics; got 'DataKind.WEIGHTS'"),
    ],
)
def test_what_cannot_be_is_refused_and_heard_by_nobody(start, panics, data, kind, declares, reason):
    """A model with a head has no class that the site did not declare."""
    evaluation = start(min_clients=1, wait_seconds=0)
    evaluation.answer("south", result=DXO(kind, data=data).to_shareable(), declares=declares)
    evaluation.answer("north", GOOD)
    assert evaluation.is_over() and panics == []
    ((what, site, said),) = evaluation.engine.said
    assert (what, site) == ("refused", "south") and said.startswith(reason)
    assert list(evaluation.heard) == ["north"]


@pytest.mark.parametrize("owner", ["SRV_other", "a/b", 300 * "x", ("a", 1), 7])
def test_which_model_it_measured_is_not_the_sites_to_say(start, panics, owner):
    """FLARE's own makes a file name and a key of the results of it."""
    evaluation = start(min_clients=2)
    told = DXO(DataKind.METRICS, data=GOOD).to_shareable()
    told.add_cookie(AppConstants.MODEL_OWNER, owner)
    evaluation.answer("south", result=told)
    evaluation.answer("north", GOOD)
    assert evaluation.is_over() and panics == [] == evaluation.engine.said
    assert sorted(evaluation.heard) == ["north", "south"]
    assert set(evaluation.controller._val_results["south"]) == {"SRV_best"}


def test_what_was_not_asked_for_does_not_count(start):
    """FLARE's own takes a result of any task id, and puts it over what the site measured."""
    evaluation = start()
    evaluation.answer("south", GOOD, task_id="none")
    assert evaluation.heard == {} and evaluation.engine.said[0][:2] == ("refused", "south")
