"""Rule 2 of the design: a class never vanishes."""

import numpy as np
from nvflare.apis.dxo import DXO, DataKind, from_shareable

from flare import context, global_model
from surgical_aggregation import wire
from surgical_aggregation.checkpoint import digest
from surgical_aggregation.global_model import (
    HOLDERS,
    INITIAL_BODY,
    MergeIntoGlobalModel,
    from_learnable,
    to_learnable,
)

BODY = {"conv/kernel": np.float32([1]), "bn/gamma": np.float32([2])}


def column(value):
    return (np.full(2, value, np.float32), np.float32([value]))


def merged(model, body, columns, holders, current_round=0):
    aggregate = DXO(DataKind.WEIGHTS, data=wire.join(body, columns), meta={HOLDERS: holders})
    fl_ctx = context(current_round=current_round, model=model)
    return from_learnable(
        MergeIntoGlobalModel().shareable_to_learnable(aggregate.to_shareable(), fl_ctx)
    )


def test_class_whose_holders_are_absent_keeps_its_column():
    model = global_model(BODY, {"Edema": column(1), "Mass": column(2)})
    after = merged(model, {}, {"Edema": column(9)}, {"Edema": ["a"]})
    assert after.columns["Mass"][0].tolist() == [2, 2]
    assert after.columns["Edema"][0].tolist() == [9, 9]


def test_new_class_is_added():
    after = merged(global_model(BODY, {"Edema": column(1)}), {}, {"Mass": column(5)}, {})
    assert sorted(after.columns) == ["Edema", "Mass"]


def test_body_variables_that_are_not_sent_stay():
    after = merged(global_model(BODY), {"conv/kernel": np.float32([7])}, {}, {})
    assert {name: value.item() for name, value in after.body.items()} == {
        "conv/kernel": 7,
        "bn/gamma": 2,
    }


def test_manifest_keeps_who_ever_taught_a_class_and_when_last():
    first = merged(global_model(BODY), {}, {"Edema": column(1)}, {"Edema": ["b"]}, 0)
    second = merged(first, {}, {"Mass": column(1)}, {"Mass": ["a"]}, 1)
    third = merged(second, {}, {"Edema": column(1)}, {"Edema": ["a"]}, 2)
    assert third.manifest["classes"] == {
        "Edema": {"sites": ["a", "b"], "last_round": 2},
        "Mass": {"sites": ["a"], "last_round": 1},
    }
    assert third.manifest["round"] == 3


class TestToSites:
    def task(self, current_round):
        learnable = to_learnable(global_model(BODY, {"Edema": column(1)}))
        return MergeIntoGlobalModel().learnable_to_shareable(
            learnable, context(current_round=current_round)
        )

    def test_manifest_stays_on_the_server(self):
        assert from_shareable(self.task(0)).meta == {}

    def test_first_task_carries_the_digest_of_the_body_alone(self):
        assert self.task(0).get_header(INITIAL_BODY) == digest(BODY)
        assert self.task(1).get_header(INITIAL_BODY) is None
