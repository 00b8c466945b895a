"""When training stops; the workflow in FLARE's simulator is in tests/simulator."""

from types import SimpleNamespace

import numpy as np
import pytest
from nvflare.apis.client import Client
from nvflare.apis.dxo import from_shareable
from nvflare.apis.fl_constant import FLMetaKey
from nvflare.apis.fl_context import FLContext
from nvflare.app_common.app_constant import AppConstants
from nvflare.app_common.app_event_type import AppEventType
from nvflare.app_common.utils.fl_model_utils import FLModelUtils
from nvflare.app_common.widgets.metrics_artifact_writer import MetricsArtifactWriter

from flare import Engine, context, global_model, result
from surgical_aggregation.server.models.global_model import (
    BEST_ROUND,
    GlobalModel,
    from_learnable,
    to_learnable,
)
from surgical_aggregation.server.workflows.federated_training import (
    STOPPED,
    TRAINING_STOPPED,
    FederatedTraining,
)

MODEL = global_model({"conv/kernel": np.ones(1, np.float32)})


class Loop:
    """FLARE's loop over rounds, with what it says of the best model: [best round, ...]."""

    def __init__(self, *, first=0, **settings):
        self.training = FederatedTraining(**settings)
        self.training._start_round = first
        self.first = first
        self.stopped = []
        self.model = global_model({"conv/kernel": np.ones(1, np.float32)})

    def run(self, bests):
        """Rounds that are made; for each the round of the best model known in it."""
        loop = self

        class Listener(Engine):
            def fire_event(self, event_type, fl_ctx):
                if event_type == TRAINING_STOPPED:
                    loop.stopped.append(fl_ctx.get_prop(STOPPED))

        made = []
        for current_round, best in enumerate(bests, self.first):
            if current_round >= self.training._start_round + self.training._num_rounds:
                break
            fl_ctx = context(current_round=current_round, engine=Listener(), model=loop.model)
            fl_ctx.set_prop(BEST_ROUND, best, private=True, sticky=False)
            self.training.handle_event(AppEventType.AFTER_SHAREABLE_TO_LEARNABLE, fl_ctx)
            made.append(current_round)
        return made


def test_stops_after_so_many_rounds_without_a_better_model():
    loop = Loop(num_rounds=9, patience=2)
    assert loop.run([None, 1, 1, 1, 1, 1]) == [0, 1, 2, 3]
    assert loop.stopped == [{"round": 3, "best_round": 1, "patience": 2}]


def test_the_round_in_which_it_stops_is_flares_last_and_so_is_written():
    loop = Loop(first=4, num_rounds=9, patience=1)
    loop.run([4] * 9)
    assert loop.model.manifest["planned_rounds"] == 6
    last = loop.training._start_round + loop.training._num_rounds - 1
    assert [stopped["round"] for stopped in loop.stopped] == [last] == [5]


def test_a_better_model_starts_the_count_anew():
    loop = Loop(num_rounds=9, patience=2)
    assert loop.run([0, 0, 2, 2, 4, 4, 4, 4]) == [0, 1, 2, 3, 4, 5, 6]


def test_rounds_whose_models_could_not_be_compared_do_not_count():
    loop = Loop(num_rounds=9, patience=2)
    loop.model.manifest["not_compared"] = 3
    assert loop.run([0] * 9) == [0, 1, 2, 3, 4, 5]
    assert loop.stopped == [{"round": 5, "best_round": 0, "patience": 2}]


def test_without_patience_it_never_stops():
    loop = Loop(num_rounds=6)
    assert loop.run([0] * 9) == list(range(6))
    assert loop.stopped == []


def test_while_there_is_no_best_model_nothing_is_counted():
    assert Loop(num_rounds=6, patience=1).run([None] * 9) == list(range(6))


def test_ending_with_the_last_round_is_no_early_stop():
    loop = Loop(num_rounds=3, patience=2)
    assert loop.run([0] * 9) == [0, 1, 2]
    assert loop.stopped == []


def test_rounds_of_the_run_that_is_continued_count():
    loop = Loop(first=10, num_rounds=9, patience=4)
    assert loop.run([8] * 9) == [10, 11, 12]
    assert loop.stopped == [{"round": 12, "best_round": 8, "patience": 4}]


@pytest.mark.parametrize("patience", [-1, 2.5, None])
def test_a_patience_that_is_no_count_is_refused(patience):
    with pytest.raises((TypeError, ValueError), match="patience"):
        FederatedTraining(patience=patience)


class Persistor:
    def __init__(self):
        self.saved = []
        self.panics = []

    def save(self, model, fl_ctx):
        self.saved.append(model)


class TestStart:
    def start(self, monkeypatch, model, num_rounds=3):
        training = FederatedTraining(num_rounds=num_rounds)
        training.persistor = Persistor()
        training.system_panic = lambda reason, fl_ctx: training.persistor.panics.append(reason)

        def load(self, fl_ctx):
            self._global_weights = model

        parent = FederatedTraining.__mro__[1]
        monkeypatch.setattr(parent, "start_controller", load)
        fl_ctx = FLContext()
        training.start_controller(fl_ctx)
        return training, fl_ctx.get_prop(AppConstants.START_ROUND)

    def test_is_at_the_checkpoints_round(self, monkeypatch):
        model = GlobalModel(MODEL.body, {}, {"head_features": 2, "round": 7})
        training, told = self.start(monkeypatch, to_learnable(model))
        assert (training._start_round, told) == (7, 7)

    def test_of_a_plain_body_is_at_0(self, monkeypatch):
        training, told = self.start(monkeypatch, to_learnable(MODEL))
        assert (training._start_round, told) == (0, 0)

    def test_without_a_model_is_left_to_flare(self, monkeypatch):
        training, told = self.start(monkeypatch, None)
        assert (training._start_round, told) == (0, None)

    def test_plans_its_rounds_after_those_that_were_made(self, monkeypatch):
        model = to_learnable(GlobalModel(MODEL.body, {}, {"head_features": 2, "round": 7}))
        self.start(monkeypatch, model)
        assert from_learnable(model).manifest["planned_rounds"] == 10

    @pytest.mark.parametrize("made", [4, 9])
    def test_without_a_number_makes_up_for_what_the_run_lacks(self, monkeypatch, made):
        manifest = {
            "head_features": 2, "round": made, "planned_rounds": 9,
            "history": [{"job": "a", "rounds": [0, made]}],
        }  # fmt: skip
        model = to_learnable(GlobalModel(MODEL.body, {}, manifest))
        training, _ = self.start(monkeypatch, model, num_rounds=0)
        assert training._start_round + training._num_rounds == 9
        assert manifest["planned_rounds"] == 9
        assert training.persistor.saved == ([model] if made == 9 else [])

    def test_without_a_number_and_a_run_to_continue_is_refused(self, monkeypatch):
        fresh = global_model(MODEL.body)
        training, _ = self.start(monkeypatch, to_learnable(fresh), num_rounds=0)
        (reason,) = training.persistor.panics
        assert "got 0, and no earlier job's model" in reason

    def test_nor_is_a_run_of_which_nobody_knows_what_it_lacks(self, monkeypatch):
        manifest = {"head_features": 2, "round": 4, "history": [{"job": "a", "rounds": [0, 4]}]}
        model = to_learnable(GlobalModel(MODEL.body, {}, manifest))
        training, _ = self.start(monkeypatch, model, num_rounds=0)
        assert "says how many were planned" in training.persistor.panics[0]


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
        fl_ctx = context("north", classes=["Edema"])
        assert FederatedTraining().fault(sent, fl_ctx) == reason

    def test_a_result_without_metrics_passes(self):
        assert FederatedTraining().fault(result({}, {}), context("north")) is None

    def test_whose_it_is_and_of_which_round_is_not_the_results_to_say(self):
        """FLARE's MetricsArtifactWriter believes both."""
        sent = result({}, {}, metrics={"bce": np.float32(0.5)})
        dxo = from_shareable(sent)
        dxo.set_meta_prop(FLMetaKey.SITE_NAME, "victim")
        dxo.update_shareable(sent)
        sent.set_header(AppConstants.CURRENT_ROUND, 7)
        task = SimpleNamespace(result=sent, client=Client("west", "token"))
        FederatedTraining().prepare(task, context("west", current_round=2))
        model = FLModelUtils.from_shareable(sent)
        writer = MetricsArtifactWriter()
        assert writer._get_site_name(model, context("west")) == "west"
        assert writer._get_current_round(model, context("west", current_round=2)) == 2
        assert model.metrics == {"bce": 0.5} and type(model.metrics["bce"]) is float

    def test_what_is_refused_belongs_to_the_running_round(self):
        assert FederatedTraining().current_round(context(current_round=7)) == 7
