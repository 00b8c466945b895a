"""Classes of different sites that may be one."""

import pytest
from nvflare.apis.event_type import EventType
from nvflare.apis.fl_component import FLComponent
from nvflare.apis.fl_context import FLContextManager

from cxr_study.data.labels.vocabulary import one_finding
from flare import Engine, context
from surgical_aggregation.server.access import look_alikes
from surgical_aggregation.server.access.job_sites import bind_declaration
from surgical_aggregation.wire.headers import ALIKE, CLASSES_DECLARED


def named(declared, policy=None):
    """The reported pairs, if each site requests a task twice; and the events fired."""
    manager, found, listener = FLContextManager(job_id="job"), [], FLComponent()
    listener.handle_event = lambda event, fl_ctx: found.append(fl_ctx.get_prop(ALIKE))
    engine = Engine(listener=listener)
    component = look_alikes.LookAlikes()
    component.handle_event(EventType.START_RUN, context(policy=policy, engine=engine))
    for site, classes in [*declared.items()] * 2:
        fl_ctx = context(site, classes=classes, engine=engine, manager=manager)
        bind_declaration(fl_ctx)
        component.handle_event(CLASSES_DECLARED, fl_ctx)
    return [pair for pair in found if pair], engine.events


@pytest.mark.parametrize(("judge", "nih", "south", "reason"), [
    (None, "Pneumonia", "Pneumonie", "nearly the same spelling"),
    (None, "Nodule", "Nodule pulmonaire", "one contains the other"),
    (None, "Class 1", "Class 2", None), (None, "Edema", "Edema", None),
    (None, "e" * 201, "e" * 202, None),  # no class name, and slow to compare
    (None, "Mass", "Nodule/Mass", "one contains the other"),
    (one_finding, "Mass", "Nodule/Mass", None),
    (one_finding, "Pneumonia", "Pneumonie", "nearly the same"),
    (one_finding, "Pleuraerguss", "Épanchement pleural", "both are called Pleural E"),
])  # fmt: skip
def test_two_spellings_are_reported_once_as_packages_rule(judge, nih, south, reason, monkeypatch):
    if judge is None:  # as on a server without the application
        monkeypatch.setattr(look_alikes, "offered", lambda *_: ())
    found, events = named({"nih": [nih, "Hernia"], "south": [south]})
    assert [pair["classes"] for pair in found] == [{nih: ["nih"], south: ["south"]}] * bool(reason)
    assert all(pair["reason"].startswith(reason) for pair in found)
    assert EventType.FATAL_SYSTEM_ERROR not in events


def test_a_site_that_labels_both_tells_them_apart():
    assert named({"a": ["Pneumonia", "Pneumonie"], "b": ["Pneumonia"]})[0] == []


@pytest.mark.parametrize(("policy", "ends"), [
    ({"look_alikes": "refuse"}, True), ({"look_alikes": "note", "permitted": {}}, False),
    ({"look_alikes": "never"}, True), (None, False),
])  # fmt: skip
def test_the_servers_policy_may_refuse_them(policy, ends):
    filler = [f"A{n}" for n in range(look_alikes.MOST)]  # behind which nothing is compared
    for more in ({}, {"c": filler}):
        declared = {"a": ["Pneumonia"], "b": ["Pneumonie"], **more}
        events = named({**more, **declared}, policy=policy)[1]
        assert (EventType.FATAL_SYSTEM_ERROR in events) == ends
