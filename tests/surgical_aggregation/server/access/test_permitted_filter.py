"""What SelectHead and CheckResult do about tables of permitted classes."""

import numpy as np
import pytest
from nvflare.apis.dxo import DXO, DataKind, from_shareable
from nvflare.apis.event_type import EventType
from nvflare.apis.fl_constant import FLContextKey, ReturnCode

from flare import Engine, context, result
from surgical_aggregation.server.access.check_result import CheckResult
from surgical_aggregation.server.access.select_head import SelectHead
from surgical_aggregation.wire import variables as wire

COLUMN = (np.zeros(2, np.float32), np.zeros(1, np.float32))
CLASSES = ("Edema", "Hernia", "Mass")
SERVER = {"permitted": {"a": ["Edema", "Mass"], "b": ["Mass"]}}


def sent(filter_, **peer):
    """Classes that a site gets of a model that has all."""
    task = DXO(DataKind.WEIGHTS, data=wire.join({}, dict.fromkeys(CLASSES, COLUMN))).to_shareable()
    reply = filter_.process(task, context("a", classes=CLASSES, **peer))
    return wire.classes_of(from_shareable(reply).data)


def taught(filter_, *classes, **peer):
    """Whether a site may send columns of the classes that it declares."""
    shareable = result({}, dict.fromkeys(classes, COLUMN))
    return filter_.process(shareable, context("a", classes=classes, **peer)) is shareable


class TestServersPolicy:
    def test_holds_in_a_job_without_a_table(self):
        assert sent(SelectHead(), policy=SERVER) == ("Edema", "Mass")
        assert taught(CheckResult(), "Edema", "Mass", policy=SERVER)
        assert not taught(CheckResult(), "Edema", "Hernia", policy=SERVER)

    def test_and_the_jobs_table_must_both_allow(self):
        job = {"a": ["Mass", "Hernia"]}
        assert sent(SelectHead(job), policy=SERVER) == ("Mass",)
        assert taught(CheckResult(job), "Mass", policy=SERVER)
        assert not taught(CheckResult(job), "Edema", policy=SERVER)
        assert not taught(CheckResult(job), "Hernia", policy=SERVER)

    def test_permits_a_site_nothing_that_it_does_not_name(self):
        assert sent(SelectHead(), policy={"permitted": {"b": ["Edema"]}}) == ()

    def test_that_says_nothing_of_classes_leaves_it_to_the_job(self):
        assert sent(SelectHead(), policy={}) == CLASSES


@pytest.mark.parametrize("cls", [SelectHead, CheckResult])
@pytest.mark.parametrize(
    ("table", "policy"),
    [
        (None, {"permitted": {"a": "Edema"}}),
        (None, {"permited": {"a": ["Edema"]}}),
        ({"a": "Edema"}, None),
        (["Edema"], None),
    ],
)
class TestMalformedTable:
    def test_ends_the_run_with_the_reason_when_it_starts(self, cls, table, policy):
        engine = Engine()
        fl_ctx = context(engine=engine, policy=policy)
        cls(table).handle_event(EventType.START_RUN, fl_ctx)
        assert engine.events == [EventType.FATAL_SYSTEM_ERROR]
        assert "permitted" in fl_ctx.get_prop(FLContextKey.EVENT_DATA)

    def test_is_said_once(self, cls, table, policy):
        engine = Engine()
        fl_ctx = context(engine=engine, policy=policy)
        fl_ctx.set_prop(FLContextKey.FATAL_SYSTEM_ERROR, True, private=True, sticky=True)
        cls(table).handle_event(EventType.START_RUN, fl_ctx)
        assert engine.events == []

    def test_permits_nothing_until_then(self, cls, table, policy):
        if cls is SelectHead:
            assert sent(cls(table), policy=policy) == ()
        else:
            assert not taught(cls(table), "Edema", policy=policy)


def test_a_table_that_spells_a_class_in_two_ways_ends_the_run_when_it_starts():
    engine = Engine()
    fl_ctx = context(engine=engine, policy={"permitted": {"a": ["Edema", "Mass"], "b": ["mass"]}})
    SelectHead().handle_event(EventType.START_RUN, fl_ctx)
    assert engine.events == [EventType.FATAL_SYSTEM_ERROR]
    assert "has 'Mass' and 'mass', which are one class" in fl_ctx.get_prop(FLContextKey.EVENT_DATA)


def test_a_usable_table_lets_the_run_start():
    engine = Engine()
    for event in (EventType.START_RUN, EventType.END_RUN):
        SelectHead().handle_event(event, context(engine=engine, policy=SERVER))
    assert engine.events == []


def test_a_refused_result_has_the_return_code_of_a_refusal():
    shareable = result({}, {"Hernia": COLUMN})
    reply = CheckResult().process(shareable, context("a", classes=["Hernia"], policy=SERVER))
    assert reply.get_return_code() == ReturnCode.EXECUTION_RESULT_ERROR
