"""When training stops; the workflow in FLARE's simulator is in tests/simulator."""

from types import SimpleNamespace

import numpy as np
import pytest
from nvflare.apis.client import Client
from nvflare.apis.dxo import MetaKey, from_shareable
from nvflare.apis.fl_constant import FLMetaKey
from nvflare.app_common.app_constant import AppConstants
from nvflare.app_common.app_event_type import AppEventType
from nvflare.app_common.workflows.scatter_and_gather import ScatterAndGather

from flare import Engine, context, global_model, result
from surgical_aggregation.server.models.global_model import GlobalModel
from surgical_aggregation.server.workflows.federated_training import FederatedTraining
from surgical_aggregation.wire import flare_internals
from surgical_aggregation.wire.headers import BEST_ROUND, STOPPED, TRAINING_STOPPED

BODY = {"conv/kernel": np.ones(1, np.float32)}


class Loop:
    """FLARE's loop over rounds: what is said of an early stop, and the rounds that are made."""

    def __init__(self, *, first=0, num_rounds=9, **settings):
        self.training = FederatedTraining(num_rounds=num_rounds, **settings)
        self.first, self.stopped = first, []
        self.model = global_model(BODY)
        self.model.manifest["planned_rounds"] = first + num_rounds
        flare_internals.plan_rounds(self.training, first, num_rounds)

    def fire_event(self, event_type, fl_ctx):
        if event_type == TRAINING_STOPPED:
            self.stopped.append(fl_ctx.get_prop(STOPPED))

    def run(self, bests):
        """Rounds that are made; for each the round of the best model known in it."""
        made, engine = [], Engine()
        engine.fire_event = self.fire_event
        for current_round, best in enumerate(bests, self.first):
            if current_round >= self.training._start_round + self.training._num_rounds:
                break
            fl_ctx = context(current_round=current_round, engine=engine, model=self.model)
            fl_ctx.set_prop(AppConstants.START_ROUND, self.first, private=True, sticky=False)
            fl_ctx.set_prop(BEST_ROUND, best, private=True, sticky=False)
            self.training.handle_event(AppEventType.AFTER_SHAREABLE_TO_LEARNABLE, fl_ctx)
            made.append(current_round)
        return made


@pytest.mark.parametrize(
    ("settings", "bests", "rounds", "stopped"),
    [
        ({"patience": 2}, [None, 1, 1, 1, 1, 1], 4, {"round": 3, "best_round": 1}),
        ({"patience": 2}, [0, 0, 2, 2, 4, 4, 4, 4], 7, {"round": 6, "best_round": 4}),
        ({"patience": 4, "first": 10}, [8] * 9, 3, {"round": 12, "best_round": 8}),
        ({"patience": 0, "num_rounds": 6}, [0] * 9, 6, None),
        ({"patience": 1, "num_rounds": 6}, [None] * 9, 6, None),
        ({"patience": 2, "num_rounds": 3}, [0] * 9, 3, None),
    ],
    ids=[
        "no better model", "a better one starts anew", "rounds of a continued run count",
        "no patience", "no best model", "the last round is no early stop",
    ],
)  # fmt: skip
def test_stops_after_so_many_rounds_without_a_better_model(settings, bests, rounds, stopped):
    loop = Loop(**settings)
    assert loop.run(bests) == list(range(loop.first, loop.first + rounds))
    assert loop.stopped == ([{**stopped, "patience": settings["patience"]}] if stopped else [])
    planned = loop.first + (rounds if stopped else settings.get("num_rounds", 9))
    assert loop.model.manifest["planned_rounds"] == planned


def test_rounds_whose_models_could_not_be_compared_do_not_count():
    loop = Loop(patience=2)
    loop.model.manifest["not_compared"] = 3
    assert loop.run([0] * 9) == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("patience", [-1, 2.5, None])
def test_a_patience_that_is_no_count_is_refused(patience):
    with pytest.raises((TypeError, ValueError), match="patience"):
        FederatedTraining(patience=patience)


class TestStart:
    def start(self, monkeypatch, panics, manifest, num_rounds=3):
        """First round, as FLARE and as the components know it, rounds, and saved manifests."""
        training, saved = FederatedTraining(num_rounds=num_rounds), []
        training.persistor = SimpleNamespace(save=lambda model, fl_ctx: saved.append(manifest))
        monkeypatch.setattr(ScatterAndGather, "start_controller", lambda self, fl_ctx: None)
        model = None if manifest is None else GlobalModel(BODY, manifest)
        fl_ctx = context(model=model)
        fl_ctx.remove_prop(AppConstants.START_ROUND)
        training.start_controller(fl_ctx)
        known = fl_ctx.get_prop(AppConstants.START_ROUND)
        return training._start_round, known, training._num_rounds, saved

    @pytest.mark.parametrize(("round_", "planned"), [({"round": 7}, 10), ({}, 3)])
    def test_is_at_the_checkpoints_round_or_without_a_model_left_to_flare(
        self, monkeypatch, panics, round_, planned
    ):
        manifest = {"head_features": 2, **round_}
        first = round_.get("round", 0)
        assert self.start(monkeypatch, panics, manifest) == (first, first, 3, [])
        assert manifest["planned_rounds"] == planned
        assert self.start(monkeypatch, panics, None) == (0, None, 3, [])

    @pytest.mark.parametrize("made", [4, 9])
    def test_without_a_number_makes_the_missing_rounds_of_the_run(self, monkeypatch, panics, made):
        manifest = {"head_features": 2, "round": made, "planned_rounds": 9}
        saved = [manifest] if made == 9 else []
        started = self.start(monkeypatch, panics, manifest, num_rounds=0)
        assert started == (made, made, 9 - made, saved) and not panics
        assert manifest["planned_rounds"] == 9

    @pytest.mark.parametrize("history", [[], [{"job": "a", "rounds": [0, 4]}]])
    def test_without_a_number_and_a_run_with_planned_rounds_is_refused(
        self, monkeypatch, panics, history
    ):
        manifest = {"head_features": 2, "round": 4, "history": history}
        self.start(monkeypatch, panics, manifest, num_rounds=0)
        assert "got 0, and no earlier job's model" in panics[0]


class TestResults:
    @pytest.mark.parametrize(
        ("metrics", "reason"),
        [
            ({"bce": 0.5, "auroc/Edema": 1.0, "train_seconds": 3.0}, None),
            ({"auroc": 1.5}, "'auroc' must be a number from 0 to 1; got 1.5"),
            ({"bce/Mass": 0.5}, "there is no metric 'bce/Mass' that the site could report"),
        ],
    )
    def test_the_metrics_that_come_with_a_model_are_checked(self, metrics, reason):
        sent = result({}, {}, metrics=metrics)
        fl_ctx = context("north", classes=["Edema"], current_round=7)
        assert FederatedTraining().fault(sent, fl_ctx) == reason
        assert FederatedTraining().fault(result({}, {}), fl_ctx) is None
        assert FederatedTraining().current_round(fl_ctx) == 7

    def test_whose_it_is_and_of_which_round_is_not_the_results_to_say(self):
        """FLARE's MetricsArtifactWriter believes both."""
        sent = result({}, {}, metrics={"bce": np.float32(0.5)})
        dxo = from_shareable(sent)
        dxo.set_meta_prop(FLMetaKey.SITE_NAME, "victim")
        dxo.update_shareable(sent)
        sent.set_header(AppConstants.CURRENT_ROUND, 7)
        task = SimpleNamespace(result=sent, client=Client("west", "token"))
        FederatedTraining().prepare(task, context("west", current_round=2))
        dxo = from_shareable(sent)
        assert dxo.get_meta_prop(FLMetaKey.SITE_NAME) == "west"
        assert sent.get_header(AppConstants.CURRENT_ROUND) == 2
        measured = dxo.get_meta_prop(MetaKey.INITIAL_METRICS)
        assert measured == {"bce": 0.5} and type(measured["bce"]) is float
