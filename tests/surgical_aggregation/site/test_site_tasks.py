"""A site's tasks, with FLARE's own containers around it."""

import numpy as np
import pytest
from nvflare.apis.dxo import DataKind, MetaKey, from_shareable
from nvflare.apis.fl_constant import ReturnCode
from nvflare.apis.signal import Signal

from numpy_model import Batches
from surgical_aggregation.checkpoints.checkpoint import digest
from surgical_aggregation.wire.headers import POSITIVES
from tiny_site import FEATURES
from tiny_tasks import COLUMNS, TASKS, carried_out, column, task, weights


@pytest.fixture
def site(array_site):
    """Counts what is read of it: `passes` are splits, `batches` a number."""
    whole = array_site.data
    array_site.passes, array_site.batches = [], 0

    def data(split, **options):
        batches = whole(split, **options)

        def a_pass():
            array_site.passes.append(split)
            for batch in batches:
                array_site.batches += 1
                yield batch

        return Batches(a_pass)

    assert array_site.training_labels.shape == (20, 2)  # which a process reads once
    array_site.data = data
    return array_site


DENSE = {"dense/kernel", "dense/bias"}


class TestTrain:
    @pytest.mark.parametrize("send", ["weights", "differences"])
    def test_gives_a_dense_head_and_what_the_strategy_does_not_keep(self, start, body, send):
        for strategy in ("fedavg", "fedbn", "fedbn+"):
            reply = carried_out(start, "train", task(body, COLUMNS), strategy=strategy, send=send)
            sent = weights(reply)
            left = body if strategy == "fedavg" else DENSE
            assert set(sent) == {*left, "head/kernel", "head/bias"}
            assert sent["head/kernel"].shape == (FEATURES, 2)

    def test_metrics_are_those_of_the_received_model_before_training(self, start, body):
        validated = from_shareable(carried_out(start, "validate", task(body, COLUMNS))).data
        dxo = from_shareable(
            carried_out(start, "train", task(body, COLUMNS), learning_rate=0.5, epochs=2)
        )
        measured = dxo.get_meta_prop(MetaKey.INITIAL_METRICS)
        for name, value in validated.items():
            assert measured[name] == pytest.approx(value)
        assert {"bce/Edema", "bce/Nodule/Mass", "train_loss"} <= set(measured)

    def test_says_how_many_images_it_trained_on_and_no_label_counts(self, start, body):
        dxo = from_shareable(carried_out(start, "train", task(body, COLUMNS), epochs=3))
        assert dxo.get_meta_prop(MetaKey.NUM_STEPS_CURRENT_ROUND) == 60
        assert dxo.get_meta_prop(POSITIVES) is None

    def test_reports_counts_only_when_told_to(self, start, site, body):
        dxo = from_shareable(carried_out(start, "train", task(body, COLUMNS), report_counts=True))
        labels = np.concatenate([y for _, y in site.data("train").as_numpy_iterator()])
        counts = labels.sum(axis=0).astype(int).tolist()
        assert dxo.get_meta_prop(POSITIVES) == dict(
            zip(["Edema", "Nodule/Mass"], counts, strict=True)
        )

    def test_columns_that_the_server_lacks_are_warmed_up(self, start, body):
        sent = {"Edema": column(1)}
        dxo = from_shareable(carried_out(start, "train", task(body, sent), learning_rate=0.0))
        np.testing.assert_array_equal(dxo.data["head/kernel"][:, 0], 1)
        assert not np.array_equal(dxo.data["head/kernel"][:, 1], np.zeros(FEATURES))


class After:
    """An abort that comes when a site has been read for so many batches."""

    def __init__(self, site, batches):
        self.site = site
        self.batches = batches

    @property
    def triggered(self):
        return self.site.batches >= self.batches


class TestAbort:
    @pytest.mark.parametrize("name", TASKS)
    def test_ends_a_task_without_a_result_after_one_batch(self, start, site, body, name):
        signal = Signal()
        signal.trigger(True)
        executor, fl_ctx = start()
        site.batches = 0
        reply = executor.execute(name, task(body, COLUMNS, model=3), fl_ctx, signal)
        assert reply.get_return_code() == ReturnCode.TASK_ABORTED
        assert site.batches == 1

    @pytest.mark.parametrize("batches", [2, 5, 8])
    def test_is_heard_in_a_warm_up_a_measurement_and_training(self, start, site, body, batches):
        """Each takes three batches."""
        executor, fl_ctx = start()
        site.batches = 0
        reply = executor.execute("train", task(body, {}), fl_ctx, After(site, batches))
        assert reply.get_return_code() == ReturnCode.TASK_ABORTED
        assert site.batches == batches

    def test_leaves_a_site_that_takes_the_next_task(self, start, body):
        signal = Signal()
        signal.trigger(True)
        executor, fl_ctx = start()
        for name in TASKS:
            executor.execute(name, task(body, COLUMNS, model=3), fl_ctx, signal)
        reply = executor.execute("train", task(body, COLUMNS, round_=4), fl_ctx, Signal())
        assert reply.get_return_code() == ReturnCode.OK


class TestReads:
    @pytest.mark.parametrize(("name", "split"), [("validate", "validation"), ("test", "test")])
    def test_an_evaluation_with_counts_makes_every_batch_of_its_split_once(
        self, start, site, body, name, split
    ):
        executor, fl_ctx = start(report_counts=True)
        site.passes.clear()
        executor.execute(name, task(body, COLUMNS, model=3), fl_ctx, Signal())
        assert site.passes == [split]

    def test_a_round_reads_each_split_once(self, start, site, body):
        executor, fl_ctx = start(report_counts=True)
        site.passes.clear()
        executor.execute("train", task(body, COLUMNS), fl_ctx, Signal())
        assert site.passes == ["validation", "train"]


class TestFailure:
    @pytest.mark.parametrize("name", TASKS)
    def test_is_answered_with_an_error_and_explained_in_the_notes_alone(
        self, start, site, body, monkeypatch, caplog, name
    ):
        caplog.set_level("INFO")

        def fragile():
            yield from ()
            raise OSError("/data/p17.png is truncated")

        monkeypatch.setattr(site, "data", lambda *_, **options: Batches(fragile))
        executor, fl_ctx = start()
        reply = executor.execute(name, task(body, COLUMNS, model=3), fl_ctx, Signal())
        assert reply.get_return_code() == ReturnCode.EXECUTION_EXCEPTION
        assert f"{name} failed: /data/p17.png is truncated" in start.notes()
        assert f"{name} failed; local_notes/job.txt says why" in caplog.text
        assert "p17" not in caplog.text and "p17" not in str(reply)


class TestEvaluation:
    @pytest.mark.parametrize("name", ["validate", "test"])
    def test_gives_metrics_and_nothing_else(self, start, body, name):
        dxo = from_shareable(carried_out(start, name, task(body, COLUMNS)))
        assert dxo.data_kind == DataKind.METRICS
        assert all(isinstance(value, float) for value in dxo.data.values())
        assert "bce" in dxo.data

    def test_a_class_that_the_server_has_no_column_for_is_left_out(self, start, body):
        dxo = from_shareable(carried_out(start, "test", task(body, {"Edema": column(1)})))
        assert "bce/Edema" in dxo.data
        assert "bce/Nodule/Mass" not in dxo.data

    def test_splits_differ(self, start, body):
        validated = carried_out(start, "validate", task(body, COLUMNS))
        tested = carried_out(start, "test", task(body, COLUMNS))
        assert from_shareable(validated).data != from_shareable(tested).data


class TestSend:
    def test_differences_are_from_what_was_received(self, start, body):
        whole = from_shareable(carried_out(start, "train", task(body, COLUMNS)))
        dxo = from_shareable(carried_out(start, "train", task(body, COLUMNS), send="differences"))
        assert dxo.data_kind == DataKind.WEIGHT_DIFF
        received = {**body, "head/kernel": [[1, 2]] * FEATURES, "head/bias": [1, 2]}
        for name, value in dxo.data.items():
            np.testing.assert_allclose(received[name] + value, whole.data[name], rtol=1e-6)

    def test_a_column_that_the_server_lacks_counts_as_zeros_there(self, start, body):
        sent = {"Edema": column(1)}
        whole = from_shareable(carried_out(start, "train", task(body, sent)))
        dxo = from_shareable(carried_out(start, "train", task(body, sent), send="differences"))
        kernel = dxo.data["head/kernel"]
        np.testing.assert_array_equal(kernel[:, 1], whole.data["head/kernel"][:, 1])

    @pytest.mark.parametrize("send", ["weights", "differences"])
    def test_a_personal_head_is_not_in_the_result(self, start, body, send):
        reply = carried_out(start, "train", task(body), personal_head=True, send=send)
        assert set(weights(reply)) == DENSE


class TestCounts:
    def sent(self, start, body, **args):
        """What each task sends: data and meta of a DXO."""
        executor, fl_ctx = start(**{"report_counts": True, **args})
        replies = [
            executor.execute(name, task(body, COLUMNS, model=3), fl_ctx, Signal()) for name in TASKS
        ]
        return [{**dxo.data, **dxo.meta} for dxo in map(from_shareable, replies)]

    def test_go_with_an_evaluation_when_asked_for(self, start, site, body):
        _, *evaluations = self.sent(start, body)
        for split, sent in zip(("validation", "test"), evaluations, strict=True):
            labels = np.concatenate([y for _, y in site.data(split).as_numpy_iterator()])
            assert sent["images"] == 20
            for at, held in enumerate(["Edema", "Nodule/Mass"]):
                assert sent[f"positives/{held}"] == (labels[:, at] == 1).sum() > 0
                assert sent[f"negatives/{held}"] == (labels[:, at] == 0).sum() > 0

    def test_stay_where_the_policy_keeps_them_and_the_log_says_so(self, start, body, caplog):
        caplog.set_level("INFO")
        for sent in self.sent(start, body, policy={}):
            assert not counts_in(sent)
        assert caplog.text.count("this site's policy keeps them here") == 1

    def test_are_not_sent_unasked_though_the_policy_lets_them(self, start, body, caplog):
        caplog.set_level("INFO")
        for sent in self.sent(start, body, policy={"report_counts": True}, report_counts=False):
            assert not counts_in(sent)
        assert "keeps them here" not in caplog.text


def counts_in(sent):
    return [name for name in sent if "positives" in name or "negatives" in name or name == "images"]


class TestInitialBody:
    def test_the_announced_one_is_accepted(self, start, body):
        reply = carried_out(start, "train", task(body, COLUMNS, digest(body)))
        assert reply.get_return_code() == ReturnCode.OK

    def test_another_one_is_refused(self, start, body):
        other = {**body, "bn/beta": body["bn/beta"] + 1}
        reply = carried_out(start, "train", task(other, COLUMNS, digest(body)))
        assert reply.get_return_code() == ReturnCode.EXECUTION_EXCEPTION
        assert "Does a filter between server and site change it" in start.notes()
