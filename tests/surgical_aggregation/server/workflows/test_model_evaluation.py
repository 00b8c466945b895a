"""What the evaluation does with results; in a running job it is in tests/simulator."""

from itertools import product
from types import SimpleNamespace

import pytest
from nvflare.apis.controller_spec import Task
from nvflare.apis.dxo import DXO, DataKind, from_shareable
from nvflare.apis.shareable import Shareable
from nvflare.apis.signal import Signal
from nvflare.app_common.app_constant import AppConstants

from flare import context
from surgical_aggregation.aggregation.site_result import SiteResult
from surgical_aggregation.server.workflows.model_evaluation import ModelEvaluation
from surgical_aggregation.server.workflows.model_refit import ModelRefit
from surgical_aggregation.server.workflows.site_check import SiteCheck
from surgical_aggregation.wire.headers import FEATURES, MEASURED

GOOD = {"bce": 0.3, "bce/Edema": 0.3, "auroc": 1.0, "auroc/Edema": 1.0, "images": 7.0}


def fault(sent, declares, features=2, has_head=True):
    """The fault of a site's metrics of a model."""
    props = {MEASURED: {"round": 3, "has_head": has_head, "features": features}}
    return ModelEvaluation().fault(sent, context("south", declares, props=props))


@pytest.mark.parametrize(("workflow", "setting"), [
    *product((ModelEvaluation, ModelRefit, SiteCheck), ("min_clients", "wait_seconds")),
    (ModelRefit, "model"),
])  # fmt: skip
def test_settings_that_would_never_end_are_refused(workflow, setting):
    with pytest.raises(ValueError, match=setting):
        workflow(**{setting: -1})


def test_the_other_sites_are_waited_for_as_configured(monkeypatch):
    """FLARE's workflow would wait for all targets."""
    waits, fl_ctx, signal = [], context(), Signal()
    monkeypatch.setattr(ModelEvaluation, "broadcast_and_wait", lambda *args: waits.append(args))
    monkeypatch.setattr(fl_ctx, "get_run_abort_signal", lambda: signal)
    evaluation, task = ModelEvaluation(min_clients=2, wait_seconds=7), Task("test", Shareable())
    evaluation.broadcast(task, fl_ctx, ["north", "south"], 0, 600)
    assert waits == [(evaluation, task, fl_ctx, ["north", "south"], 2, 7, signal)]


@pytest.mark.parametrize(("data", "declares", "reason"), [
    (GOOD, ["Edema"], None),
    ({("bce", 1): 0.3}, ["Edema"], "there is no metric ('bce', 1)"),
    ({"bce": "low"}, ["Edema"], "'bce' must be a number"),
    ({"bce/Mass": 0.3}, ["Edema"], "there is no metric 'bce/Mass'"),
    ({"bce/Edema": 0.5}, [], "there is no metric 'bce/Edema'"),
])  # fmt: skip
def test_a_site_reports_metrics_of_its_declared_classes(data, declares, reason):
    """A model with a head has no class that the site did not declare; else names are unknown."""
    sent = SiteResult({}, {}, metrics=data)
    if not declares:
        assert fault(sent, declares, has_head=False) is None
    found = fault(sent, declares)
    assert found is None if reason is None else found.startswith(reason)


def test_what_has_no_metrics_cannot_be_read():
    with pytest.raises(ValueError, match=r"it must carry metrics; got 'DataKind.WEIGHTS'"):
        ModelEvaluation().read(DXO(DataKind.WEIGHTS, data={}).to_shareable())


def test_statistics_are_of_the_measured_models_features():
    statistics = {"mean": [0.0, 1.0], "variance": [1.0, 0.0], "limit": 2.0, "images": 60}
    dxo = DXO(DataKind.METRICS, data=GOOD, meta={FEATURES: statistics})
    sent = ModelEvaluation().read(dxo.to_shareable())
    assert fault(sent, ["Edema"], features=2) is None
    reason = "the mean and variance of features need one number per feature"
    assert fault(sent, ["Edema"], features=3).startswith(reason)


@pytest.mark.parametrize("owner", ["SRV_other", "a/b", ("a", 1)])
def test_the_server_says_which_model_a_site_measured(owner):
    """FLARE's workflow uses it as a file name and as a key of the results."""
    result = DXO(DataKind.METRICS, data={"images": 7}, meta={"odd": 1}).to_shareable()
    result.add_cookie(AppConstants.MODEL_OWNER, owner)
    task = SimpleNamespace(props={AppConstants.MODEL_OWNER: "SRV_best"})
    taken = SimpleNamespace(result=result, task=task)
    read = SiteResult({}, {}, metrics={"images": 7.0})
    ModelEvaluation().prepare(taken, read, context("south"))
    assert result.get_cookie(AppConstants.MODEL_OWNER) == "SRV_best"
    dxo = from_shareable(result)
    assert type(dxo.data["images"]) is float and dxo.meta == {}
