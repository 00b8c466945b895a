import math

import numpy as np
import pytest
from nvflare.apis.dxo import DXO, DataKind
from nvflare.apis.event_type import EventType
from nvflare.apis.fl_constant import FLContextKey, ReturnCode
from nvflare.apis.shareable import make_reply
from nvflare.app_common.app_constant import AppConstants
from nvflare.app_common.app_event_type import AppEventType

from flare import Engine, context, global_model, result
from surgical_aggregation.best_model import BEST, BestModelSelector

COLUMN = (np.zeros(2, np.float32), np.zeros(1, np.float32))
MODEL = global_model({}, {"Edema": COLUMN, "Mass": COLUMN})
EMPTY = global_model({})


class Run:
    """A selector and what it announced: [(round, loss), ...]."""

    def __init__(self):
        self.selector = BestModelSelector()
        self.announced = []

    def fire(self, event_type, current_round, site=None, classes=("Edema",), model=MODEL, **props):
        run = self

        class Listener(Engine):
            def fire_event(self, event_type, fl_ctx):
                if event_type == AppEventType.GLOBAL_BEST_MODEL_AVAILABLE:
                    best = fl_ctx.get_prop(BEST)
                    run.announced.append((best["round"], best["value"]))

        fl_ctx = context(site, classes, current_round, model, Listener())
        for key, value in props.items():
            fl_ctx.set_prop(getattr(AppConstants, key), value, private=True, sticky=False)
        fl_ctx.set_prop(
            FLContextKey.WORKFLOW,
            "validate_final" if event_type in FINAL else "train",
            private=True,
            sticky=False,
        )
        self.selector.handle_event(event_type, fl_ctx)

    def round(self, current_round, losses, accepted=True, **facts):
        self.fire(AppEventType.ROUND_STARTED, current_round)
        for site, loss in losses.items():
            shareable = result({}, {"Edema": COLUMN}, metrics={"bce": loss})
            self.fire(
                AppEventType.AFTER_CONTRIBUTION_ACCEPT, current_round, site,
                TRAINING_RESULT=shareable, AGGREGATION_ACCEPTED=accepted, **facts,
            )  # fmt: skip
        self.fire(AppEventType.BEFORE_AGGREGATION, current_round)

    def final(self, current_round, results):
        self.fire(EventType.START_WORKFLOW, current_round)
        for site, shareable in results.items():
            self.fire(
                AppEventType.VALIDATION_RESULT_RECEIVED, current_round, site,
                VALIDATION_RESULT=shareable,
            )  # fmt: skip
        self.fire(EventType.END_WORKFLOW, current_round)


FINAL = (
    EventType.START_WORKFLOW,
    AppEventType.VALIDATION_RESULT_RECEIVED,
    EventType.END_WORKFLOW,
)


def metrics(loss):
    return DXO(DataKind.METRICS, data={"bce": loss}).to_shareable()


def test_smallest_mean_over_sites_wins():
    run = Run()
    run.round(0, {"a": 0.5, "b": 0.7})
    run.round(1, {"a": 0.2, "b": 0.8})
    run.round(2, {"a": 0.4, "b": 0.9})
    assert run.announced == [(0, 0.6), (1, 0.5)]


def test_round_0_counts_when_its_model_has_all_columns():
    run = Run()
    run.round(0, {"a": 0.1})
    run.round(1, {"a": 0.2})
    assert run.announced == [(0, 0.1)]


def test_a_model_without_columns_is_no_candidate():
    run = Run()
    run.round(0, {"a": 0.1}, model=EMPTY)
    run.round(1, {"a": 0.2})
    assert run.announced == [(1, 0.2)]


def test_final_model_counts():
    run = Run()
    run.round(0, {"a": 0.5, "b": 0.5})
    run.final(0, {"a": metrics(0.25), "b": metrics(0.25)})
    assert run.announced == [(0, 0.5), (1, 0.25)]


def test_final_model_that_a_site_could_not_measure_is_no_candidate():
    run = Run()
    run.round(0, {"a": 0.5, "b": 0.5})
    run.final(0, {"a": metrics(0.1), "b": make_reply(ReturnCode.EXECUTION_EXCEPTION)})
    assert run.announced == [(0, 0.5)]


def test_a_loss_over_fewer_sites_does_not_win():
    run = Run()
    run.round(0, {"a": 0.2, "b": 0.8})
    run.round(1, {"a": 0.2})
    assert run.announced == [(0, 0.5)]


def test_a_site_that_comes_in_later_starts_the_comparison_anew():
    run = Run()
    run.round(0, {"a": 0.2})
    run.round(1, {"a": 0.1, "b": 0.5})
    run.round(2, {"a": 0.1, "b": 0.25})
    assert run.announced == [(0, 0.2), (1, 0.3), (2, 0.175)]


def test_refused_results_do_not_count():
    run = Run()
    run.round(0, {"a": 0.1}, accepted=False)
    assert run.announced == []


@pytest.mark.parametrize("loss", [math.nan, math.inf, -0.1, "0.1", None])
def test_a_loss_that_is_no_number_does_not_count(loss):
    run = Run()
    run.round(0, {"a": loss})
    assert run.announced == []


def test_losses_of_a_round_do_not_reach_the_next():
    run = Run()
    run.fire(AppEventType.ROUND_STARTED, 0)
    shareable = result({}, {"Edema": COLUMN}, metrics={"bce": 0.9})
    run.fire(
        AppEventType.AFTER_CONTRIBUTION_ACCEPT, 0, "b",
        TRAINING_RESULT=shareable, AGGREGATION_ACCEPTED=True,
    )  # fmt: skip
    run.round(1, {"a": 0.1})
    assert run.announced == [(1, 0.1)]
