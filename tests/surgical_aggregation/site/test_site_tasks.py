"""A site's tasks, with FLARE's own containers around it."""

import numpy as np
import pytest
from nvflare.apis.dxo import DataKind, MetaKey
from nvflare.apis.fl_constant import ReturnCode

from numpy_model import Batches
from surgical_aggregation.checkpoints.checkpoint import digest
from surgical_aggregation.wire.headers import POSITIVES
from tiny_site import FEATURES
from tiny_tasks import COLUMNS, TASKS, column


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
    @pytest.mark.parametrize("strategy", ["fedavg", "fedbn", "fedbn+"])
    def test_gives_a_dense_head_and_what_the_strategy_does_not_keep(
        self, process, body, strategy, send
    ):
        sent = process(strategy=strategy, send=send).sent().data
        left = body if strategy == "fedavg" else DENSE
        assert set(sent) == {*left, "head/kernel", "head/bias"}
        assert sent["head/kernel"].shape == (FEATURES, 2)

    def test_metrics_are_those_of_the_received_model_before_training(self, process):
        validated = process().sent("validate").data
        meta = process(learning_rate=0.5, epochs=3).sent().meta
        measured = meta[MetaKey.INITIAL_METRICS]
        for name, value in validated.items():
            assert measured[name] == pytest.approx(value)
        assert {"bce/Edema", "bce/Nodule/Mass", "train_loss"} <= set(measured)
        assert meta[MetaKey.NUM_STEPS_CURRENT_ROUND] == 60

    def test_columns_that_are_new_to_the_server_are_warmed_up(self, process):
        head = process(learning_rate=0.0).sent(columns={"Edema": column(1)}).data["head/kernel"]
        np.testing.assert_array_equal(head[:, 0], 1)
        assert not np.array_equal(head[:, 1], np.zeros(FEATURES))

    def test_differences_are_from_what_was_received(self, process, body):
        whole, dxo = process().sent(), process(send="differences").sent()
        assert dxo.data_kind == DataKind.WEIGHT_DIFF
        received = {**body, "head/kernel": [[1, 2]] * FEATURES, "head/bias": [1, 2]}
        for name, value in dxo.data.items():
            np.testing.assert_allclose(received[name] + value, whole.data[name], rtol=1e-6)

    @pytest.mark.parametrize("send", ["weights", "differences"])
    def test_a_personal_head_is_not_in_the_result(self, process, send):
        assert set(process(personal_head=True, send=send).sent(columns={}).data) == DENSE

    @pytest.mark.parametrize(("moved", "code"), [(0, "OK"), (1, ReturnCode.EXECUTION_EXCEPTION)])
    def test_starts_from_the_announced_body_alone(self, start, process, body, moved, code):
        site = process()
        site.body = {**body, "bn/beta": body["bn/beta"] + moved}
        assert site.train(3, header=digest(body)).get_return_code() == code
        said = "Does a filter between server and site change it" in start.notes()
        assert said == (code != "OK")


class After:
    """An abort that comes when a site has been read for so many batches."""

    def __init__(self, site, batches):
        self.site = site
        self.batches = batches

    @property
    def triggered(self):
        return self.site.batches >= self.batches


class TestAbort:
    @pytest.mark.parametrize(
        ("name", "batches"), [*((name, 1) for name in TASKS), ("train", 5), ("train", 8)]
    )
    def test_ends_a_task_after_the_running_batch_and_the_next_can_follow(
        self, process, site, name, batches
    ):
        """Warm-up, measurement and training take three batches each."""
        north = process()
        site.batches = 0
        columns = {} if name == "train" else COLUMNS
        reply = north.run(name, columns, After(site, batches), round_=3, model=3)
        assert reply.get_return_code() == ReturnCode.TASK_ABORTED
        assert site.batches == batches
        assert north.train(4).get_return_code() == ReturnCode.OK


@pytest.mark.parametrize(
    ("name", "splits"),
    [("validate", ["validation"]), ("test", ["test"]), ("train", ["validation", "train"])],
)
def test_every_batch_of_a_split_is_made_once(process, site, name, splits):
    north = process(report_counts=True)
    site.passes.clear()
    north.sent(name)
    assert site.passes == splits


@pytest.mark.parametrize("name", TASKS)
def test_a_failure_is_answered_with_an_error_and_explained_in_the_notes_alone(
    start, process, site, monkeypatch, caplog, name
):
    caplog.set_level("INFO")

    def fragile():
        yield from ()
        raise OSError("/data/p17.png is truncated")

    monkeypatch.setattr(site, "data", lambda *_, **options: Batches(fragile))
    reply = process().run(name, round_=3, model=3)
    assert reply.get_return_code() == ReturnCode.EXECUTION_EXCEPTION
    assert f"{name} failed: /data/p17.png is truncated" in start.notes()
    assert f"{name} failed; local_notes/job.txt says why" in caplog.text
    assert "p17" not in caplog.text and "p17" not in str(reply)


class TestEvaluation:
    def test_gives_metrics_of_its_split_and_of_classes_with_a_column(self, process):
        validated, tested = (process().sent(name) for name in ("validate", "test"))
        for dxo in (validated, tested):
            assert dxo.data_kind == DataKind.METRICS and "bce" in dxo.data
            assert all(isinstance(value, float) for value in dxo.data.values())
        assert validated.data != tested.data
        values = process().sent("test", {"Edema": column(1)}).data
        assert "bce/Edema" in values and "bce/Nodule/Mass" not in values


class TestCounts:
    def sent(self, process, **args):
        """What each task sends: data and meta of a DXO."""
        north = process(**{"report_counts": True, **args})
        return [{**dxo.data, **dxo.meta} for dxo in map(north.sent, TASKS)]

    def test_go_with_every_task_when_asked_for(self, process, site):
        trained, *evaluations = self.sent(process)
        labels = {
            split: np.concatenate([y for _, y in site.data(split).as_numpy_iterator()])
            for split in ("train", "validation", "test")
        }
        counts = labels["train"].sum(axis=0).astype(int).tolist()
        assert trained[POSITIVES] == dict(zip(CLASSES, counts, strict=True))
        for split, sent in zip(("validation", "test"), evaluations, strict=True):
            assert sent["images"] == 20
            for at, name in enumerate(CLASSES):
                assert sent[f"positives/{name}"] == (labels[split][:, at] == 1).sum() > 0
                assert sent[f"negatives/{name}"] == (labels[split][:, at] == 0).sum() > 0

    @pytest.mark.parametrize(
        ("args", "said"),
        [
            ({"policy": {}}, 1),
            ({"policy": {"report_counts": True}, "report_counts": False}, 0),
            ({"report_counts": False}, 0),
        ],
        ids=["the policy keeps them", "the job asks for none", "without a policy"],
    )
    def test_else_they_stay(self, process, caplog, args, said):
        caplog.set_level("INFO")
        for sent in self.sent(process, **args):
            assert not [n for n in sent if "positives" in n or "negatives" in n or n == "images"]
        assert caplog.text.count("this site's policy keeps them here") == said


CLASSES = ("Edema", "Nodule/Mass")
