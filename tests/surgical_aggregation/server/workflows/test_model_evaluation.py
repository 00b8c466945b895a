"""What the evaluation does with results; in a running job it is in tests/simulator."""

from types import SimpleNamespace

import pytest
from nvflare.apis.controller_spec import Task
from nvflare.apis.dxo import DXO, DataKind, from_shareable
from nvflare.apis.shareable import Shareable
from nvflare.apis.signal import Signal
from nvflare.app_common.app_constant import AppConstants

from flare import context
from surgical_aggregation.server.workflows.model_evaluation import ModelEvaluation
from surgical_aggregation.wire.headers import FEATURES, MODEL_FEATURES, MODEL_HAS_HEAD

GOOD = {"bce": 0.3, "bce/Edema": 0.3, "auroc": 1.0, "auroc/Edema": 1.0, "images": 7.0}


@pytest.mark.parametrize("settings", [{"min_clients": -1}, {"wait_seconds": -1}])
def test_settings_that_would_never_end_are_refused(settings):
    with pytest.raises(ValueError, match=next(iter(settings))):
        ModelEvaluation(**settings)


def test_the_other_sites_are_waited_for_as_configured(monkeypatch):
    """FLARE's own would wait for all targets."""
    waits, fl_ctx, signal = [], context(), Signal()
    monkeypatch.setattr(ModelEvaluation, "broadcast_and_wait", lambda *args: waits.append(args))
    monkeypatch.setattr(fl_ctx, "get_run_abort_signal", lambda: signal)
    evaluation, task = ModelEvaluation(min_clients=2, wait_seconds=7), Task("test", Shareable())
    evaluation.broadcast(task, fl_ctx, ["north", "south"], 0, 600)
    assert waits == [(evaluation, task, fl_ctx, ["north", "south"], 2, 7, signal)]


@pytest.mark.parametrize(("data", "kind", "declares", "reason"), [
    (GOOD, DataKind.METRICS, ["Edema"], None),
    ({("bce", 1): 0.3}, DataKind.METRICS, ["Edema"], "there is no metric ('bce', 1)"),
    ({"bce": "low"}, DataKind.METRICS, ["Edema"], "'bce' must be a number"),
    ({"bce/Mass": 0.3}, DataKind.METRICS, ["Edema"], "there is no metric 'bce/Mass'"),
    ({"bce/Edema": 0.5}, DataKind.METRICS, [], "there is no metric 'bce/Edema'"),
    ({}, DataKind.WEIGHTS, ["Edema"], "it must carry metrics; got 'DataKind.WEIGHTS'"),
])  # fmt: skip
def test_a_site_reports_metrics_of_its_declared_classes(data, kind, declares, reason):
    """A model with a head has no class that the site did not declare; else names are unknown."""
    sent, fl_ctx = DXO(kind, data=data).to_shareable(), context("south", declares)
    if not declares:
        assert ModelEvaluation().fault(sent, fl_ctx) is None
    fl_ctx.set_prop(MODEL_HAS_HEAD, True, private=True, sticky=True)
    found = ModelEvaluation().fault(sent, fl_ctx)
    assert found is None if reason is None else found.startswith(reason)


@pytest.mark.parametrize(
    ("features", "reason"), [(2, None), (3, "the mean and variance of features must be as many")]
)
def test_statistics_are_of_the_measured_models_features(features, reason):
    said = {"mean": [0.0, 1.0], "variance": [1.0, 0.0], "limit": 2.0, "images": 60}
    sent = DXO(DataKind.METRICS, data=GOOD, meta={FEATURES: said}).to_shareable()
    fl_ctx = context("south", ["Edema"])
    fl_ctx.set_prop(MODEL_FEATURES, features, private=True, sticky=True)
    found = ModelEvaluation().fault(sent, fl_ctx)
    assert found is None if reason is None else found.startswith(reason)


@pytest.mark.parametrize("owner", ["SRV_other", "a/b", ("a", 1)])
def test_the_server_says_which_model_a_site_measured(owner):
    """FLARE's own makes a file name and a key of the results of it."""
    result = DXO(DataKind.METRICS, data={"images": 7}, meta={"odd": 1}).to_shareable()
    result.add_cookie(AppConstants.MODEL_OWNER, owner)
    task = SimpleNamespace(props={AppConstants.MODEL_OWNER: "SRV_best"})
    ModelEvaluation().prepare(SimpleNamespace(result=result, task=task), context("south"))
    assert result.get_cookie(AppConstants.MODEL_OWNER) == "SRV_best"
    dxo = from_shareable(result)
    assert type(dxo.data["images"]) is float and dxo.meta == {}
