"""A site's tasks, with FLARE's own containers around it."""

import math
from itertools import product

import numpy as np
import pytest
from nvflare.apis.dxo import DataKind, MetaKey
from nvflare.apis.fl_constant import ReturnCode

from numpy_model import Batches
from surgical_aggregation.aggregation import feature_statistics
from surgical_aggregation.aggregation.metrics import summary, without_counts
from surgical_aggregation.checkpoints.checkpoint import digest
from surgical_aggregation.wire import headers
from tiny_site import FEATURES
from tiny_tasks import COLUMNS, TASKS, column

CLASSES = ("Edema", "Nodule/Mass")


@pytest.fixture
def site(array_site):
    """Counts what is read from it: `passes` lists splits, `batches` is a number."""
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


def test_a_class_without_a_negative_is_reported_and_selects_no_model(process, start, site):
    whole = site.arrays

    def arrays(split):
        images, labels = whole(split)
        return images, np.where([False, split == "train"], np.float32(1), labels)

    both = process().sent("validate").data
    site.arrays = arrays
    del site.training_labels
    one = process()
    assert one.sent().meta[headers.LACKING] == {"Nodule/Mass": "negative"}
    assert "Nodule/Mass has no negative training image" in start.notes()
    validated, tested = one.sent("validate").data, one.sent("test").data
    expected = {"bce": both["bce/Edema"], "auroc": both["auroc/Edema"]}
    assert validated.items() >= {**expected, "bce/Nodule/Mass": both["bce/Nodule/Mass"]}.items()
    assert tested["bce"] == np.mean([tested["bce/Edema"], tested["bce/Nodule/Mass"]])


def test_a_personal_head_is_not_sent(process, body):
    sent = process(personal_head=True).sent(columns={}).data
    assert set(sent) == {name for name in body if not name.startswith("bn/")}


def test_what_training_measures_is_the_received_model_before(process):
    validated = process().sent("validate").data
    meta = process(learning_rate=0.5, epochs=3).sent().meta
    measured = meta[MetaKey.INITIAL_METRICS]
    assert {name: measured[name] for name in validated} == pytest.approx(validated)
    assert {"bce/Edema", "bce/Nodule/Mass", "train_loss"} <= set(measured)
    assert meta[MetaKey.NUM_STEPS_CURRENT_ROUND] == 60


def test_columns_that_are_new_to_the_server_are_warmed_up(process):
    head = process(learning_rate=0.0).sent(columns={"Edema": column(1)}).data["head/kernel"]
    np.testing.assert_array_equal(head[:, 0], 1)
    assert not np.array_equal(head[:, 1], np.zeros(FEATURES))


@pytest.mark.parametrize("send", ["weights", "differences"])
@pytest.mark.parametrize("strategy", ["fedavg", "fedbn+"])
def test_a_refit_gives_columns_alone_and_trains_nothing(process, caplog, strategy, send):
    north = process(strategy=strategy, send=send, seed=1)
    twin = process(strategy=strategy, send=send, seed=1)
    assert set(north.sent(round_=0).data) == set(twin.sent(round_=0).data)
    found = north.sent("refit").data
    assert set(found) == {"head/kernel", "head/bias"}
    kept = np.zeros((FEATURES, 2)) if send == "differences" else [[1, 2]] * FEATURES
    assert not np.allclose(found["head/kernel"], kept)
    assert "north: the columns are refitted, with penalty 0." in caplog.text
    # The optimizer and the order of images are unaffected.
    np.testing.assert_equal(dict(north.sent(round_=1).data), dict(twin.sent(round_=1).data))


@pytest.mark.parametrize(("moved", "code"), [(0, "OK"), (1, ReturnCode.EXECUTION_EXCEPTION)])
def test_training_starts_from_the_announced_body_alone(start, process, body, moved, code):
    site = process()
    site.body = {**body, "bn/beta": body["bn/beta"] + moved}
    assert site.train(3, header=digest(body)).get_return_code() == code
    noted = "Does a filter between server and site change it" in start.notes()
    assert noted == (code != "OK")


@pytest.mark.parametrize(("name", "batches"), [*product(TASKS, [1]), ("train", 5), ("train", 8)])
def test_an_abort_ends_a_task_after_the_running_batch_alone(process, site, name, batches):
    """Warm-up, measurement and training take three batches each."""

    class After:
        triggered = property(lambda self: site.batches >= batches)

    north = process()
    site.batches = 0
    columns = {} if name == "train" else COLUMNS
    reply = north.run(name, columns, After(), round_=3, model=3)
    assert reply.get_return_code() == ReturnCode.TASK_ABORTED
    assert site.batches == batches
    assert north.train(4).get_return_code() == ReturnCode.OK


@pytest.mark.parametrize(("name", "splits"), [
    ("validate", ["validation"]), ("test", ["test"]),
    ("train", ["validation", "train"]), ("refit", ["train", "validation"]),
])  # fmt: skip
def test_every_batch_of_a_split_is_made_once(process, site, name, splits):
    north = process(report_counts=True)
    site.passes.clear()
    north.sent(name)
    assert site.passes == splits


@pytest.mark.parametrize("name", TASKS)
def test_a_failure_is_explained_in_the_notes_alone(start, process, site, monkeypatch, caplog, name):
    def fragile():
        yield from ()
        raise OSError("/data/p17.png is truncated")

    monkeypatch.setattr(site, "data", lambda *_, **options: Batches(fragile))
    reply = process().run(name, round_=3, model=3)
    assert reply.get_return_code() == ReturnCode.EXECUTION_EXCEPTION
    assert f"{name} failed: /data/p17.png is truncated" in start.notes()
    assert f"{name} failed; see local_notes/job.txt" in caplog.text
    assert "p17" not in caplog.text and "p17" not in str(reply)


def test_an_evaluation_gives_metrics_of_its_split_and_of_classes_with_a_column(process):
    validated, tested = (process().sent(name) for name in ("validate", "test"))
    for dxo in (validated, tested):
        assert dxo.data_kind == DataKind.METRICS and "bce" in dxo.data
        assert all(isinstance(value, float) for value in dxo.data.values())
    assert validated.data != tested.data
    values = process().sent("test", {"Edema": column(1)}).data
    assert "bce/Edema" in values and "bce/Nodule/Mass" not in values


@pytest.mark.parametrize(("args", "sent"), [
    ({"report_features": True}, ["test"]),
    ({"report_features": True, "policy": {"report_features": True}}, ["test"]),
    ({"report_features": True, "policy": {}}, []), ({}, []),
    ({"report_features": True, "strategy": "fedbn"}, []),
], ids=["no policy", "permitted", "not permitted", "not asked for", "personal model"])  # fmt: skip
def test_features_go_with_the_test_where_asked_for_and_permitted(process, monkeypatch, args, sent):
    monkeypatch.setattr(feature_statistics, "FEWEST_IMAGES", 20)
    north = process(**args)
    north.train(3)
    tasks = ("validate", "test")
    found = {name: north.sent(name).meta.get(headers.FEATURES) for name in tasks}
    assert [name for name in tasks if found[name]] == sent
    for features in filter(None, found.values()):
        assert len(features["mean"]) == FEATURES
        assert feature_statistics.fault(features, FEATURES) is None
    if args.get("strategy"):
        assert north.model("best").manifest["features"]["north"]["images"] == 20


def test_counts_go_with_every_task_when_asked_for(process, site):
    north = process(report_counts=True)
    splits = {"train": "train", "validate": "validation", "test": "test", "refit": "train"}
    for name, split in splits.items():
        labels = np.concatenate([y for _, y in site.data(split).as_numpy_iterator()])
        positives = dict(zip(CLASSES, labels.sum(axis=0), strict=True))
        dxo = north.sent(name)
        if split == "train":
            assert dxo.meta[headers.POSITIVES] == positives
        else:
            assert dxo.data["images"] == 20
            for label, count in positives.items():
                assert dxo.data[f"positives/{label}"] == count > 0
                assert dxo.data[f"negatives/{label}"] == 20 - count > 0


POSITIVES_OF_64 = {"Edema": 7, "Nodule/Mass": 25}


def possible(positives, reported):
    """Every AUROC that a site with so many positives among 64 images may report."""
    counted = {"positives/x": positives, "negatives/x": 64 - positives}
    pairs = 2 * math.prod(counted.values())  # a tie counts half
    return {reported({"auroc/x": k / pairs, **counted}).get("auroc/x") for k in range(pairs + 1)}


@pytest.mark.parametrize(("policy", "reported", "fitting"), [
    ({"report_counts": True}, dict, [1]), ({}, without_counts, [30, 31, 32]),
], ids=["permitted", "withheld"])  # fmt: skip
def test_withheld_counts_cannot_be_rebuilt_from_what_many_rounds_report(
    process, site, monkeypatch, caplog, policy, reported, fitting
):
    """An attacker who knows that all 64 images are labelled tries every number of positives."""

    def arrays(split):
        rng = np.random.default_rng(len(split))
        labels = [rng.permutation(64) < positives for positives in POSITIVES_OF_64.values()]
        return rng.normal(size=(64, 3)).astype(np.float32), np.float32(np.transpose(labels))

    monkeypatch.setattr(site, "arrays", arrays)
    north, sent = process(policy=policy), []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        columns = {name: (rng.normal(size=FEATURES), np.zeros(1)) for name in CLASSES}
        sent += [north.sent(name, columns).data for name in ("validate", "test")]
        sent += [north.sent("train", columns).meta[MetaKey.INITIAL_METRICS]]
    known = [possible(positives, reported) for positives in range(1, 33)]
    for name, right in POSITIVES_OF_64.items():
        values = {metrics[f"auroc/{name}"] for metrics in sent}
        assert values <= known[right - 1] and sum(values <= of for of in known) in fitting
    for metrics in sent:
        assert metrics == reported(metrics) and summary(metrics) in caplog.text
    assert f"training loss {sent[-1]['train_loss']:.4f}" in caplog.text


@pytest.mark.parametrize(("args", "lines"), [
    ({"policy": {}, "report_counts": True}, 1), ({"policy": {"report_counts": True}}, 0),
], ids=["the policy keeps them", "the job asks for none"])  # fmt: skip
def test_else_counts_stay(process, caplog, args, lines):
    north = process(**args)
    for dxo in map(north.sent, TASKS):
        names = {*dxo.data, *dxo.meta}
        assert not [n for n in names if "positives" in n or "negatives" in n or n == "images"]
    assert caplog.text.count("this site's policy withholds them") == lines
