"""The executor at its start, and what a site's policy makes of it."""

import pytest
from nvflare.apis.dxo import MetaKey, from_shareable
from nvflare.apis.event_type import EventType
from nvflare.apis.fl_constant import ReturnCode
from nvflare.apis.signal import Signal

from flare import Engine, context
from surgical_aggregation.checkpoints.checkpoint import load
from surgical_aggregation.site.class_declaration import DeclareClasses
from surgical_aggregation.site.contract.site import SiteError
from surgical_aggregation.site.executor import CANNOT_TAKE_PART, KerasExecutor
from surgical_aggregation.site.training import tensorflow_setup
from surgical_aggregation.wire import variables as wire
from tiny_tasks import COLUMNS, TASKS, carried_out, column, folder, task


class TestStart:
    @pytest.mark.parametrize(
        ("error", "noted"),
        [
            (SiteError("p17.png is missing."), "p17.png is missing."),
            (KeyError("p17.png"), "'p17.png'\nTraceback"),
        ],
        ids=["foreseen", "code that breaks"],
    )
    @pytest.mark.parametrize("part", ["model", "data"])
    def test_a_site_that_cannot_start_says_why_and_answers_with_an_error(
        self, start, site, body, monkeypatch, caplog, part, error, noted
    ):
        def broken(*args, **options):
            raise error

        monkeypatch.setattr(site, part, broken)
        reply = carried_out(start, "train", task(body, COLUMNS))
        assert f"{CANNOT_TAKE_PART}{noted}" in start.notes()
        assert "cannot take part in the run; local_notes/job.txt says why" in caplog.text
        assert reply.get_return_code() == ReturnCode.EXECUTION_EXCEPTION
        assert "p17" not in str(reply)  # the reason may hold a path and stays at the site
        assert "p17" not in caplog.text  # which FLARE may stream

    def test_another_word_for_what_to_send_keeps_the_site_from_training(self, start, body):
        carried_out(start, "train", task(body, COLUMNS), send="deltas")
        assert f"{CANNOT_TAKE_PART}send must be one of" in start.notes()


def test_tensorflow_is_set_up_before_a_policy_can_look_at_batches(site, monkeypatch, tmp_path):
    order = []
    monkeypatch.setattr(tensorflow_setup, "configure", lambda *args: order.append(args) or False)
    monkeypatch.setattr(type(site), "data", lambda *args, **options: order.append("data"))
    executor = KerasExecutor(seed=3, threads=2)
    fl_ctx = context(engine=Engine(tmp_path, site=site), policy={"min_positives": 1})
    for event in (EventType.ABOUT_TO_START_RUN, EventType.START_RUN):
        for component in (DeclareClasses(), executor):
            component.handle_event(event, fl_ctx)
    assert order[:2] == [(2, 3, False), "data"]


def test_without_a_gpu_mixed_precision_is_said_to_be_float32(start, caplog):
    start(mixed_precision=True)
    assert "mixed precision needs a GPU; this site has none: float32" in caplog.text


WITHHOLDS_EDEMA = {"share": ["Nodule/Mass"], "report_counts": True}


class TestPolicy:
    @pytest.mark.parametrize("args", [{}, {"personal_head": True}, {"send": "differences"}])
    def test_a_withheld_class_is_in_nothing_that_is_sent(self, start, body, args):
        columns = {} if "personal_head" in args else {"Nodule/Mass": column(2)}
        executor, fl_ctx = start(policy=WITHHOLDS_EDEMA, report_counts=True, **args)
        for name in TASKS:
            reply = executor.execute(name, task(body, columns, model=4), fl_ctx, Signal())
            assert reply.get_return_code() == ReturnCode.OK
            assert "Nodule/Mass" in str(reply)
            assert "Edema" not in str(reply)

    def test_a_personal_head_is_trained_for_all_classes(self, start, body, caplog):
        caplog.set_level("INFO")
        executor, fl_ctx = start(policy=WITHHOLDS_EDEMA, personal_head=True)
        reply = executor.execute("train", task(body, round_=0), fl_ctx, Signal())
        told = from_shareable(reply).meta[MetaKey.INITIAL_METRICS]
        assert told["warmed_up"] == 1 and "train_loss" not in told  # of the withheld class, too
        executor.execute("test", task(body, round_=None, model=0), fl_ctx, Signal())
        kept = load(folder(fl_ctx) / "site_best.npz")
        assert wire.classes_of(kept.variables) == ("Edema", "Nodule/Mass")
        assert "what is measured of Edema" in start.notes()
        assert "Edema" not in caplog.text and "2 classes" not in caplog.text
        assert "training loss" not in caplog.text  # which is a mean over both

    @pytest.mark.parametrize(
        ("policy", "reason"),
        [
            ({"min_images": 21}, "'min_images' 21 training images; there are 20"),
            ({"shares": ["Edema"]}, r"got ['shares']. Check the spelling"),
        ],
    )
    def test_one_that_keeps_the_site_away_says_why_in_its_notes_alone(
        self, start, body, caplog, policy, reason
    ):
        executor, fl_ctx = start(policy=policy)
        assert CANNOT_TAKE_PART in start.notes() and reason in start.notes()
        assert reason not in caplog.text
        for name in TASKS:
            reply = executor.execute(name, task(body, COLUMNS), fl_ctx, Signal())
            assert reply.get_return_code() == ReturnCode.EXECUTION_EXCEPTION
            assert reason not in str(reply)
