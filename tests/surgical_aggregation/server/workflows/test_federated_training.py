"""When training stops; the workflow in FLARE's simulator is in tests/simulator."""

from types import SimpleNamespace

import numpy as np
import pytest
from nvflare.apis.client import Client
from nvflare.apis.dxo import from_shareable
from nvflare.apis.fl_constant import FLMetaKey
from nvflare.app_common.app_constant import AppConstants
from nvflare.app_common.app_event_type import AppEventType
from nvflare.app_common.utils.fl_model_utils import FLModelUtils
from nvflare.app_common.workflows.scatter_and_gather import ScatterAndGather

from flare import Engine, context, result
from surgical_aggregation.aggregation.site_result import SiteResult
from surgical_aggregation.server.models.global_model import GlobalModel
from surgical_aggregation.server.workflows.federated_training import FederatedTraining
from surgical_aggregation.wire import flare_internals
from surgical_aggregation.wire.headers import BEST_ROUND, STOPPED, TRAINING_STOPPED

BODY = {"conv/kernel": np.ones(1, np.float32)}


@pytest.mark.parametrize(("settings", "bests", "rounds", "stopped"), [
    ({"patience": 2}, [None, 1, 1, 1, 1, 1], 4, {"round": 3, "best_round": 1}),
    ({"patience": 2}, [0, 0, 2, 2, 4, 4, 4, 4], 7, {"round": 6, "best_round": 4}),
    ({"patience": 4, "first": 10}, [8] * 9, 3, {"round": 12, "best_round": 8}),
    ({"patience": 2, "lost": 3}, [0] * 9, 6, {"round": 5, "best_round": 0}),
    ({"patience": 0, "num_rounds": 6}, [0] * 9, 6, None),
    ({"patience": 1, "num_rounds": 6}, [None] * 9, 6, None),
    ({"patience": 2, "num_rounds": 3}, [0] * 9, 3, None),
], ids=["no better model", "a better one restarts the count",
        "rounds of a continued run count", "those that could not be compared do not",
        "no patience", "no best model", "the last round is no early stop"])  # fmt: skip
def test_stops_after_so_many_rounds_without_a_better_model(settings, bests, rounds, stopped):
    """FLARE's loop over rounds; `bests`: for each the round of the best model known in it."""
    settings = {"first": 0, "lost": 0, "num_rounds": 9, **settings}
    first, planned, lost = settings.pop("first"), settings["num_rounds"], settings.pop("lost")
    training, stops, made = FederatedTraining(**settings), [], 0
    facts = {"planned_rounds": first + planned, "not_compared": lost}
    engine, learnable = Engine(), GlobalModel(BODY, facts).to_learnable()

    def fire_event(event_type, fl_ctx):
        if event_type == TRAINING_STOPPED:
            stops.append(fl_ctx.get_prop(STOPPED))

    engine.fire_event = fire_event
    flare_internals.plan_rounds(training, first, planned)
    while first + made < training._start_round + training._num_rounds:
        props = {AppConstants.GLOBAL_MODEL: learnable, AppConstants.START_ROUND: first}
        props[BEST_ROUND] = bests[made]
        fl_ctx = context(current_round=first + made, engine=engine, props=props)
        training.handle_event(AppEventType.AFTER_SHAREABLE_TO_LEARNABLE, fl_ctx)
        made += 1
    expected = [{**stopped, "patience": settings["patience"]}] if stopped else []
    assert made == rounds and stops == expected
    assert GlobalModel.from_learnable(learnable).manifest["planned_rounds"] == first + rounds


@pytest.mark.parametrize("patience", [-1, 2.5, None])
def test_a_patience_that_is_no_count_is_refused(patience):
    with pytest.raises((TypeError, ValueError), match="patience"):
        FederatedTraining(patience=patience)


def test_flares_workflow_gets_its_settings():
    known = vars(FederatedTraining(min_clients=2, wait_time_after_min_received=7, train_timeout=9))
    for name in ("min_clients", "wait_time_after_min_received", "train_timeout"):
        assert known[f"_{name}"] == known[name]
    with pytest.raises(ValueError, match="min_clients"):
        FederatedTraining(min_clients=-1)


class TestStart:
    def start(self, monkeypatch, manifest, num_rounds=3):
        """First round, as FLARE and as the components know it, rounds, saved ones, and planned."""
        training, saved = FederatedTraining(num_rounds=num_rounds), []
        training.persistor = SimpleNamespace(save=lambda model, fl_ctx: saved.append(True))
        monkeypatch.setattr(ScatterAndGather, "start_controller", lambda self, fl_ctx: None)
        fl_ctx = context(model=None if manifest is None else GlobalModel(BODY, manifest))
        fl_ctx.remove_prop(AppConstants.START_ROUND)
        training.start_controller(fl_ctx)
        known = fl_ctx.get_prop(AppConstants.START_ROUND)
        assert training._min_clients == 0  # all sites, which FLARE's constructor does not take
        planned = manifest and GlobalModel.current(fl_ctx).manifest.get("planned_rounds")
        return training._start_round, known, training._num_rounds, saved, planned

    @pytest.mark.parametrize(("round_", "planned"), [({"round": 7}, 10), ({}, 3)])
    def test_is_at_the_models_round_or_without_one_at_flares(self, monkeypatch, round_, planned):
        manifest = {"head_features": 2, **round_}
        first = round_.get("round", 0)
        assert self.start(monkeypatch, manifest) == (first, first, 3, [], planned)
        assert self.start(monkeypatch, None) == (0, None, 3, [], None)

    @pytest.mark.parametrize("made", [4, 9])
    def test_without_a_number_makes_the_missing_rounds_of_the_run(self, monkeypatch, panics, made):
        manifest = {"head_features": 2, "round": made, "planned_rounds": 9}
        started = self.start(monkeypatch, manifest, num_rounds=0)
        assert started == (made, made, 9 - made, [True] * (made == 9), 9) and not panics
        del manifest["planned_rounds"]
        self.start(monkeypatch, manifest, num_rounds=0)
        assert "got 0 and a start model without them" in panics[0]


@pytest.mark.parametrize(("metrics", "reason"), [
    (None, None),
    ({"bce": 0.5, "auroc/Edema": 1.0, "train_seconds": 3.0}, None),
    ({"auroc": 1.5}, "'auroc' must be a number from 0 to 1; got 1.5"),
    ({"bce/Mass": 0.5}, "there is no metric 'bce/Mass' that the site could report"),
])  # fmt: skip
def test_the_metrics_that_come_with_a_model_are_checked(metrics, reason):
    fl_ctx = context("north", classes=["Edema"], current_round=7)
    sent = FederatedTraining().read(result({}, {}, metrics=metrics))
    assert FederatedTraining().fault(sent, fl_ctx) == reason
    assert FederatedTraining().current_round(fl_ctx) == 7


def test_the_server_says_whose_a_result_is_and_of_which_round():
    """FLARE's MetricsArtifactWriter trusts both."""
    sent = result({}, {}, metrics={"bce": np.float32(0.5)})
    dxo = from_shareable(sent)
    dxo.set_meta_prop(FLMetaKey.SITE_NAME, "victim")
    dxo.update_shareable(sent)
    sent.set_header(FLMetaKey.SITE_NAME, "victim")
    sent.set_header(AppConstants.CURRENT_ROUND, 7)
    task = SimpleNamespace(result=sent, client=Client("west", "token"))
    read = SiteResult({}, {}, metrics={"bce": 0.5})
    FederatedTraining().prepare(task, read, context("west", current_round=2))
    model = FLModelUtils.from_shareable(sent)
    assert model.meta[FLMetaKey.SITE_NAME] == "west"
    assert model.current_round == 2
    measured = model.metrics
    assert measured == {"bce": 0.5} and type(measured["bce"]) is float
