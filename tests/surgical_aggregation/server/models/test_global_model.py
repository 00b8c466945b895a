"""Rule 2 of the design: a class never vanishes."""

import numpy as np
import pytest
from nvflare.apis.dxo import DXO, DataKind, from_shareable
from nvflare.app_common.app_constant import AppConstants

from flare import Engine, context, global_model
from surgical_aggregation.aggregation.result_checks import Contribution
from surgical_aggregation.aggregation.server_optimizer import OptimizerError
from surgical_aggregation.checkpoints.checkpoint import digest
from surgical_aggregation.server.models.global_model import (
    GlobalModel,
    MergeIntoGlobalModel,
    from_learnable,
    to_learnable,
)
from surgical_aggregation.wire import headers
from surgical_aggregation.wire import variables as wire

BODY = {"conv/kernel": np.float32([1]), "bn/gamma": np.float32([2])}


def column(value):
    return (np.full(2, value, np.float32), np.float32([value]))


def merged(model, body, columns, trained, current_round=0, **optimizer):
    aggregate = DXO(
        DataKind.WEIGHTS, data=wire.join(body, columns), meta={headers.TRAINED_BY: trained}
    )
    fl_ctx = context(current_round=current_round, model=model)
    return from_learnable(
        MergeIntoGlobalModel(**optimizer).shareable_to_learnable(aggregate.to_shareable(), fl_ctx)
    )


def test_what_nobody_sent_stays_and_a_new_class_is_added():
    model = global_model(BODY, {"Edema": column(1), "Mass": column(2)})
    sent = {"Edema": column(9), "Hernia": column(5)}
    after = merged(model, {"conv/kernel": np.float32([7])}, sent, {"Edema": ["a"]})
    assert {name: value.item() for name, value in after.body.items()} == {
        "conv/kernel": 7, "bn/gamma": 2,
    }  # fmt: skip
    assert {name: kernel.tolist() for name, (kernel, _) in after.columns.items()} == {
        "Edema": [9, 9], "Hernia": [5, 5], "Mass": [2, 2],
    }  # fmt: skip


def test_manifest_keeps_who_ever_trained_a_class_and_when_last():
    first = merged(global_model(BODY), {}, {"Edema": column(1)}, {"Edema": ["b"]}, 0)
    second = merged(first, {}, {"Mass": column(1)}, {"Mass": ["a"]}, 1)
    third = merged(second, {}, {"Edema": column(1)}, {"Edema": ["a"]}, 2)
    assert third.manifest["classes"] == {
        "Edema": {"sites": ["a", "b"], "last_round": 2},
        "Mass": {"sites": ["a"], "last_round": 1},
    }
    assert third.manifest["round"] == 3


def test_a_class_that_is_trained_again_is_removed_no_more():
    gone = {"Edema": {"round": 1, "sites": ["a"]}, "Mass": {"round": 1, "sites": ["b"]}}
    model = GlobalModel(BODY, {"head_features": 2, "removed": gone})
    after = merged(model, {}, {"Edema": column(1)}, {"Edema": ["a"]}, 4)
    assert after.manifest["removed"] == {"Mass": gone["Mass"]}


class TestOptimizer:
    def test_takes_a_step_and_remembers_it_for_the_next(self):
        momentum = {"optimizer": "fedavgm", "momentum": 0.5}
        model = global_model({"conv/kernel": np.float32([1])}, {"Mass": column(2)})
        first = merged(model, {"conv/kernel": np.float32([3])}, {"Mass": column(2)}, {}, **momentum)
        assert first.body["conv/kernel"].tolist() == [3]
        second = merged(first, {"conv/kernel": np.float32([3])}, {}, {}, 1, **momentum)
        assert second.body["conv/kernel"].tolist() == [4]  # nobody moved; half of the last step
        assert second.moments["velocity/conv/kernel"].tolist() == [1]

    def test_an_unknown_one_is_refused_and_without_one_nothing_is_remembered(self):
        with pytest.raises(OptimizerError, match=r"one of \('none', 'fedavgm', 'fedadam'\); got"):
            MergeIntoGlobalModel("adam")
        model = GlobalModel(BODY, {"head_features": 2}, {"velocity/conv/kernel": np.ones(1)})
        assert merged(model, {"conv/kernel": np.float32([7])}, {}, {}).moments == {}


ADAM = {"optimizer": "fedadam", "learning_rate": 0.01}
MOMENTS = {"mean/conv/kernel": np.float32([0.5]), "square/conv/kernel": np.float32([1])}


class TestDroppedRound:
    """A step that is not finite leaves the model as it was; the run goes on."""

    def merge(self, value, **optimizer):
        """A round in which one site of two has sent something large; the engine, too."""
        start = {"head_features": 2, "round": 3, "classes": {"Mass": {}}}
        model = GlobalModel(wire.join(BODY, {"Mass": column(2)}), start, MOMENTS)
        engine = Engine()
        fl_ctx = context(current_round=3, model=model, engine=engine)
        large = Contribution({"conv/kernel": np.float32([value])}, {"Mass": column(-5)})
        fl_ctx.set_prop(
            headers.ACCEPTED,
            {"a": Contribution({"conv/kernel": np.float32([1])}, {"Mass": column(-7)}), "b": large},
            private=True, sticky=False,
        )  # fmt: skip
        data = wire.join(large.body, {"Mass": column(4)})
        meta = {headers.TRAINED_BY: {"Mass": ["a", "b"]}}
        aggregate = DXO(DataKind.WEIGHTS, data=data, meta=meta).to_shareable()
        generator = MergeIntoGlobalModel(**optimizer)
        return from_learnable(generator.shareable_to_learnable(aggregate, fl_ctx)), fl_ctx, engine

    @pytest.mark.parametrize(
        ("value", "optimizer"),
        [
            (np.inf, {}),  # an average that is not finite
            (1e38, ADAM),  # a moment: its square
            (3e38, {"optimizer": "fedavgm", "learning_rate": 2.0}),  # the step itself
        ],
    )
    def test_leaves_model_and_moments_as_they_were(self, value, optimizer):
        after, _, engine = self.merge(value, **optimizer)
        assert {name: v.tolist() for name, v in after.body.items()} == {
            "conv/kernel": [1], "bn/gamma": [2],
        }  # fmt: skip
        assert after.columns["Mass"][0].tolist() == [2, 2]
        assert {name: v.tolist() for name, v in after.moments.items()} == {
            "mean/conv/kernel": [0.5], "square/conv/kernel": [1],
        }  # fmt: skip
        assert after.manifest == {"head_features": 2, "round": 4, "classes": {"Mass": {}}}
        assert engine.events == [headers.ROUND_DROPPED]

    def test_says_which_variable_and_whose_values_were_the_largest(self):
        _, fl_ctx, _ = self.merge(1e38, **ADAM)
        drop = fl_ctx.get_prop(headers.DROP)
        assert drop["round"] == 3
        assert (
            "1 variables would get values that are NaN or infinite, e.g. 'square/conv/kernel'"
            in (drop["reason"])
        )
        assert "came: b 1e+38 in 'conv/kernel'; a 7 in 'head/Mass/kernel'. Look" in drop["reason"]

    def test_a_large_value_is_merged_if_finite_and_its_senders_need_not_be_known(self):
        after, _, engine = self.merge(1e38)
        assert after.body["conv/kernel"].tolist() == [np.float32(1e38)] and engine.events == []
        aggregate = DXO(DataKind.WEIGHTS, data={"conv/kernel": np.float32([np.nan, 1])})
        fl_ctx = context(model=global_model(BODY))
        MergeIntoGlobalModel().shareable_to_learnable(aggregate.to_shareable(), fl_ctx)
        assert "came: not known" in fl_ctx.get_prop(headers.DROP)["reason"]


class TestToSites:
    def task(self, current_round=0, first=0, moments=(), **facts):
        manifest = {"head_features": 2, "initial_body_sha256": "of the first run", **facts}
        variables = wire.join(BODY, {"Edema": column(1)})
        learnable = to_learnable(GlobalModel(variables, manifest, dict(moments)))
        fl_ctx = context(current_round=current_round)
        fl_ctx.set_prop(AppConstants.START_ROUND, first, private=True, sticky=False)
        return MergeIntoGlobalModel().learnable_to_shareable(learnable, fl_ctx)

    def test_only_variables_leave_the_server(self):
        task = self.task(moments={"velocity/conv/kernel": np.float32([1])}, secret=1)
        assert from_shareable(task).meta == {}
        assert "velocity" not in str(task) and "secret" not in str(task)

    @pytest.mark.parametrize("round_", [5, 6])
    def test_every_task_of_a_continued_run_names_the_jobs_that_it_continues(self, round_):
        history = [{"job": "a", "rounds": [0, 2]}, {"job": "b", "rounds": [2, 5]}]
        task = self.task(round_, 5, history=history)
        assert task.get_header(headers.CONTINUES) == {"jobs": ["b", "a"], "round": 5}
        assert self.task(round_).get_header(headers.CONTINUES) is None

    @pytest.mark.parametrize(("round_", "first"), [(0, 0), (1, 0), (5, 5), (6, 5)])
    def test_the_first_task_carries_the_digest_of_the_body_it_starts_from(self, round_, first):
        told = self.task(round_, first).get_header(headers.INITIAL_BODY)
        assert told == (digest(BODY) if round_ == first else None)
