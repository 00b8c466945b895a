"""What a site declares and its executor does at the start, and what its policy makes of it."""

from unittest.mock import Mock

import numpy as np
import pytest
from nvflare.apis.dxo import from_shareable
from nvflare.apis.event_type import EventType
from nvflare.apis.fl_constant import ReturnCode
from nvflare.apis.fl_context import M, make_mask
from nvflare.apis.shareable import Shareable
from nvflare.apis.signal import Signal

from flare import Engine, context
from surgical_aggregation.checkpoints.checkpoint import load
from surgical_aggregation.site.class_declaration import DeclareClasses, DeclareNames
from surgical_aggregation.site.contract.site import SiteError
from surgical_aggregation.site.executor import MOST_THREADS, KerasExecutor
from surgical_aggregation.site.local_notes import CANNOT_PARTICIPATE
from surgical_aggregation.site.training import tensorflow_setup
from surgical_aggregation.wire import variables as wire
from surgical_aggregation.wire.headers import CLASSES, VERSIONS
from tiny_tasks import COLUMNS, TASKS, column, folder, task


def started(folder, site, policy=None):
    """Start a run at a site: its context, and its private notes."""
    engine = Engine(folder, site=site)
    fl_ctx = context(engine=engine, policy=policy)
    DeclareClasses().handle_event(EventType.START_RUN, fl_ctx)
    return fl_ctx, engine.notes()


def test_a_process_declares_the_sites_classes_publicly_for_the_whole_run(site, tmp_path):
    first, notes = started(tmp_path, site)
    assert first.get_all_public_props()[CLASSES] == ["Edema", "Nodule/Mass"]
    assert first.props[CLASSES][M] == make_mask(private=False, sticky=True)
    assert notes == ""  # without a policy


def test_classes_given_by_name_are_declared_by_a_filter_that_lets_all_pass():
    fl_ctx, part, sent = context(engine=Engine()), DeclareNames(["Edema"]), Shareable()
    part.handle_event(EventType.START_RUN, fl_ctx)
    declared = fl_ctx.get_all_public_props()
    assert declared[CLASSES] == ["Edema"] and VERSIONS in declared
    assert part.process(sent, fl_ctx) is sent


@pytest.mark.parametrize("union_head", [True, False])
def test_a_policy_keeps_its_site_out_of_a_job_with_a_union_head(site, tmp_path, union_head):
    site.union_head = union_head
    assert CLASSES in started(tmp_path, site)[0].get_all_public_props()
    fl_ctx, notes = started(tmp_path, site, {"refuse_union_head": True})
    assert (CLASSES in fl_ctx.get_all_public_props()) != union_head
    assert ("'refuse_union_head', and in this job every site's head has the" in notes) == union_head
    KerasExecutor(threads=1).handle_event(EventType.START_RUN, fl_ctx)
    assert (CANNOT_PARTICIPATE in fl_ctx.get_engine().notes()) == union_head


def test_a_class_of_a_union_that_the_site_does_not_label_is_no_warning(site, tmp_path, monkeypatch):
    monkeypatch.setattr(type(site), "training_labels", np.float32([[1, np.nan]] * 24))
    site.union_head = True
    fl_ctx, _ = started(tmp_path, site)
    KerasExecutor(threads=1).handle_event(EventType.START_RUN, fl_ctx)
    notes = fl_ctx.get_engine().notes()
    assert "Edema has no negative training image" in notes and "Nodule/Mass" not in notes


def test_what_the_policy_withholds_is_noted_once_at_the_site_alone(site, tmp_path, caplog):
    """The log does not reveal whether it withholds anything: FLARE may stream any log."""
    logs = []
    for policy in ({"share": ["Edema", "Nodule/Mass"]}, {"share": ["Edema"]}):
        caplog.clear()
        fl_ctx, notes = started(tmp_path, site, policy)
        logs.append([r.getMessage() for r in caplog.records if "declared" not in r.getMessage()])
    assert logs[0] == logs[1]
    assert "this site's policy withholds, if any: see local_notes/job.txt" in logs[0][0]
    withheld = ("no class", "Nodule/Mass (not in 'share')")
    assert [notes.count(f"policy withholds: {which}") for which in withheld] == [1, 1]
    assert fl_ctx.get_all_public_props()[CLASSES] == ["Edema"]
    assert "Mass" not in str(fl_ctx.get_all_public_props()) + caplog.text


@pytest.mark.parametrize(("policy", "reason"), [
    ({"share": []}, "withholds all of its classes"), ({"min_positives": 1}, "data/p17.png is gone"),
    (None, "needs one Site component; got none"),
], ids=["kept away by its policy", "cannot count", "not there"])  # fmt: skip
def test_without_classes_a_site_declares_none(site, tmp_path, monkeypatch, caplog, policy, reason):
    monkeypatch.setattr(site, "data", Mock(side_effect=KeyError("/data/p17.png is gone")))
    fl_ctx, notes = started(tmp_path, site if policy else None, policy)
    assert CLASSES not in fl_ctx.get_all_public_props()
    assert "no classes to declare: " in notes and reason in notes and reason not in caplog.text
    assert "no classes to declare; see local_notes/job.txt" in caplog.text


P17 = "p17.png is missing"


@pytest.mark.parametrize(("broken", "error", "args", "noted"), [
    ("model", SiteError(P17), {}, P17),
    ("data", KeyError(P17), {}, f"'{P17}'\nTraceback"),
    (None, None, {"send": "deltas"}, "send must be one of"),
    (None, None, {"policy": {"min_images": 21}}, "this site's policy needs 'min_images' 21"),
    (None, None, {"policy": {"shares": ["p17"]}}, "local/privacy.json: a scope's 'prop"),
], ids=["model", "code that breaks", "send", "kept away by its policy", "odd policy"])  # fmt: skip
def test_a_site_that_cannot_start_says_why_in_its_notes_and_answers_with_an_error(
    start, site, body, monkeypatch, caplog, broken, error, args, noted
):
    if broken:
        monkeypatch.setattr(site, broken, Mock(side_effect=error))
    executor, fl_ctx = start(**args)
    assert f"{CANNOT_PARTICIPATE}: {noted}" in start.notes()
    assert "cannot participate in the run; see local_notes/job.txt" in caplog.text
    for name in TASKS:
        reply = executor.execute(name, task(body, COLUMNS), fl_ctx, Signal())
        assert reply.get_return_code() == ReturnCode.EXECUTION_EXCEPTION
        for text in (str(reply), caplog.text):  # which FLARE may stream
            assert "p17" not in text and noted not in text


def test_tensorflow_is_set_up_before_a_policy_can_look_at_batches(site, monkeypatch, tmp_path):
    order = []
    monkeypatch.setattr(tensorflow_setup, "configure", lambda *args: order.append(args) or False)
    monkeypatch.setattr(type(site), "data", lambda *args, **options: order.append("data"))
    executor = KerasExecutor(seed=3, threads=10**9)
    fl_ctx = context(engine=Engine(tmp_path, site=site), policy={"min_positives": 1})
    for event in (EventType.ABOUT_TO_START_RUN, EventType.START_RUN):
        for component in (DeclareClasses(), executor):
            component.handle_event(event, fl_ctx)
    assert order[:2] == [(MOST_THREADS, 3, False), "data"]


@pytest.mark.parametrize("mixed", [True, False])
def test_mixed_precision_may_be_float32_and_is_logged(site, monkeypatch, tmp_path, caplog, mixed):
    monkeypatch.setattr(tensorflow_setup, "configure", lambda *args: args[2] and mixed)
    executor = KerasExecutor(mixed_precision=True, threads=2)
    fl_ctx = context(engine=Engine(tmp_path, site=site))
    for event in (EventType.ABOUT_TO_START_RUN, EventType.START_RUN):
        executor.handle_event(event, fl_ctx)
    warning = "mixed precision needs a GPU, or a CPU with bfloat16; this site has neither: float32"
    assert (warning in caplog.text) != mixed


WITHHOLDS_EDEMA = {"share": ["Nodule/Mass"], "report_counts": True}


@pytest.mark.parametrize("args", [{}, {"personal_head": True}, {"send": "differences"}])
def test_a_withheld_class_is_in_nothing_that_is_sent(start, body, args):
    columns = {} if "personal_head" in args else {"Nodule/Mass": column(2)}
    executor, fl_ctx = start(policy=WITHHOLDS_EDEMA, report_counts=True, **args)
    for name in TASKS[:3] if "personal_head" in args else TASKS:
        reply = executor.execute(name, task(body, columns, model=4), fl_ctx, Signal())
        assert reply.get_return_code() == ReturnCode.OK
        assert "Nodule/Mass" in str(reply) and "Edema" not in str(reply)


def test_a_personal_head_is_not_refitted_for_the_server(start, body):
    executor, fl_ctx = start(policy=WITHHOLDS_EDEMA, personal_head=True)
    reply = executor.execute("refit", task(body, {}), fl_ctx, Signal())
    assert reply.get_return_code() == ReturnCode.EXECUTION_EXCEPTION
    assert "a personal head stays at the site" in start.notes()


def test_a_personal_head_trains_no_withheld_class_either(start, site, body, monkeypatch, caplog):
    whole, sent = site.arrays, []
    for edema in (0, 1):
        labelled = [edema, 0], [True, False]

        def arrays(split, labelled=labelled):
            images, labels = whole(split)
            return images, np.where(labelled[1], np.float32(labelled[0]), labels)

        monkeypatch.setattr(site, "arrays", arrays)
        executor, fl_ctx = start(policy=WITHHOLDS_EDEMA, personal_head=True)
        reply = executor.execute("train", task(body, round_=0), fl_ctx, Signal())
        sent.append(from_shareable(reply).data["dense/kernel"])
    np.testing.assert_array_equal(*sent)  # what leaves does not depend on its labels
    executor.execute("test", task(body, round_=None, model=0), fl_ctx, Signal())
    kept = load(folder(fl_ctx) / "site_best.npz")
    assert wire.classes_of(kept.variables) == ("Nodule/Mass",)
    assert "policy withholds: Edema (not in 'share')" in start.notes()
    assert "Edema" not in caplog.text and "2 classes" not in caplog.text
