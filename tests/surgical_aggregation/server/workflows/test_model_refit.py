"""What the workflow makes of a best model and of columns; in a run it is in tests/simulator."""

import numpy as np
import pytest
from nvflare.apis.client import Client
from nvflare.apis.controller_spec import ClientTask
from nvflare.apis.dxo import from_shareable
from nvflare.apis.signal import Signal
from nvflare.app_common.app_constant import AppConstants

from flare import Engine, column, context, result
from surgical_aggregation.checkpoints.checkpoint import Checkpoint, save
from surgical_aggregation.server.models.aggregator import SurgicalAggregator
from surgical_aggregation.server.models.global_model import GlobalModel
from surgical_aggregation.server.workflows.model_refit import ModelRefit
from surgical_aggregation.wire import variables as wire
from surgical_aggregation.wire.headers import CANDIDATE, CONTINUES, MODEL_ROUND, REFIT

BODY = {"conv/kernel": np.float32([4, 4])}
LAST_BODY = {"conv/kernel": np.float32([9, 9])}
TRAINED = {"sites": ["a"], "last_round": 2, "rounds": [[0, 2, ["a"]]]}
BEST = {
    "head_features": 2, "round": 3, "strategy": "fedavg", "body_kinds": {},
    "classes": {"Edema": TRAINED, "Mass": TRAINED},
}  # fmt: skip
COLUMNS = {"Edema": column(1), "Mass": column(2)}


class Run:
    """A workflow after training, and the sites' columns: site -> class -> value."""

    def __init__(self, folder, monkeypatch, columns=None, best=BEST, head=COLUMNS, **args):
        aggregator = SurgicalAggregator("fedavg", columns_only=True)
        self.engine = Engine(folder, column_aggregator=aggregator)
        models = folder / "server/job/models"
        if best:
            save(Checkpoint(wire.join(BODY, head), best), models / "best.npz")
        last = {**BEST, "round": 9}
        save(Checkpoint(wire.join(LAST_BODY, head), last), models / "last.npz")
        model = GlobalModel(wire.join(LAST_BODY, {}), last)
        self.fl_ctx = context(model=model, engine=self.engine, current_round=8)
        self.tasks, self.columns = [], columns or {}
        self.workflow = ModelRefit(**{"model": "best", **args})
        monkeypatch.setattr(self.workflow, "broadcast_and_wait", self.broadcast)
        self.workflow.control_flow(Signal(), self.fl_ctx)

    def broadcast(self, task, fl_ctx, targets, needed, wait, abort_signal):
        self.tasks.append(task)
        self.waits = needed, wait
        self.taken = {}
        for site, columns in self.columns.items():
            answer = ClientTask(Client(site, "token"), task)
            made = {name: column(value) for name, value in columns.items()}
            answer.result = result({}, made, current_round=8)
            model = GlobalModel.current(fl_ctx)
            of_site = context(site, current_round=8, model=model, engine=self.engine)
            task.result_received_cb(answer, of_site)
            self.taken[site] = of_site.get_prop(AppConstants.AGGREGATION_ACCEPTED)

    @property
    def model(self):
        return GlobalModel.current(self.fl_ctx)


def test_the_best_models_columns_are_averaged_over_the_sites_that_label_them(tmp_path, monkeypatch):
    sent = {"a": {"Edema": 5}, "b": {"Edema": 7, "Mass": 8}}
    run = Run(tmp_path, monkeypatch, sent, min_clients=2, wait_seconds=7)
    assert run.taken == {"a": True, "b": True} and run.waits == (2, 7)
    (task,) = run.tasks
    given = from_shareable(task.data).data
    assert task.name == "refit" and given["conv/kernel"].tolist() == [4, 4]
    assert given["head/Mass/kernel"].tolist() == [2, 2]
    assert task.data.get_header(MODEL_ROUND) == 3 and task.data.get_header(CONTINUES) is None
    assert task.data.get_cookie(AppConstants.CONTRIBUTION_ROUND) == 8
    kernels = {name: kernel.tolist() for name, (kernel, _) in run.model.columns.items()}
    assert kernels == {"Edema": [6, 6], "Mass": [8, 8]}
    assert run.model.body["conv/kernel"].tolist() == [4, 4]
    assert (run.model.manifest["round"], run.model.manifest[CANDIDATE]) == (3, REFIT)
    by = {name: of["sites"] for name, of in run.model.manifest["classes"].items()}
    assert by == {"Edema": ["a", "b"], "Mass": ["a", "b"]}  # b missed the rounds of this model


def test_the_last_models_columns_are_fitted_to_its_body_where_that_is_wanted(tmp_path, monkeypatch):
    run = Run(tmp_path, monkeypatch, {"a": {"Edema": 5}}, model="last")
    (task,) = run.tasks
    assert from_shareable(task.data).data["conv/kernel"].tolist() == [9, 9]
    assert task.data.get_header(MODEL_ROUND) == 9
    assert run.model.columns["Edema"][0].tolist() == [5, 5]
    assert run.model.columns["Mass"][0].tolist() == [2, 2]  # no site sent it
    assert (run.model.manifest["round"], run.model.manifest[CANDIDATE]) == (9, REFIT)


def test_a_result_with_a_body_is_not_taken(tmp_path, monkeypatch):
    aggregator = SurgicalAggregator("fedavg", columns_only=True)
    whole = result(BODY, {"Edema": column(1)})
    model = GlobalModel(wire.join(BODY, COLUMNS), BEST)
    assert not aggregator.accept(whole, context("a", model=model))
    assert aggregator.accept(result({}, {"Edema": column(1)}), context("a", model=model))


@pytest.mark.parametrize(("how", "warned"), [
    ({"model": "none"}, []), ({"best": None}, ["there is no best model to refit"]),
    ({"best": {**BEST, CANDIDATE: REFIT}}, []),  # an earlier job has refitted them
])  # fmt: skip
def test_without_a_model_to_fit_nothing_is_sent(tmp_path, monkeypatch, logged, panics, how, warned):
    run = Run(tmp_path, monkeypatch, **how)
    assert run.tasks == [] == panics and CANDIDATE not in run.model.manifest
    assert logged["warning"] == warned


@pytest.mark.parametrize(("how", "reason"), [
    ({"best": {**BEST, "strategy": "fedbn"}}, "here each has a personal model (strategy 'fedbn'"),
    ({"head": {}}, "or a personal head). Set model to 'none'"),
    ({"aggregator_id": "other"}, "an Aggregator is needed; got NoneType. Check aggregator_id"),
])  # fmt: skip
def test_what_cannot_be_fitted_for_all_ends_the_run(tmp_path, monkeypatch, panics, how, reason):
    run = Run(tmp_path, monkeypatch, **how)
    assert run.tasks == [] and reason in panics[0]
