import json
import math
from types import SimpleNamespace

import numpy as np
import pytest

from cxr_studies.baseline.without_federation import train_alone
from cxr_study.common.errors import InputError
from numpy_model import BATCH_NORM, ArraySite, LocalModel
from surgical_aggregation.aggregation.batch_norm_strategy import StrategyError
from surgical_aggregation.checkpoints.checkpoint import Checkpoint, load
from surgical_aggregation.checkpoints.manifest import made_now
from surgical_aggregation.site.training import trainer
from surgical_aggregation.site.training.training_options import TrainingOptions
from surgical_aggregation.wire import variables as wire
from tiny_job import initial_body
from tiny_site import FEATURES

CLASSES = ("Edema", "Mass")
COLUMN = (np.ones(FEATURES, np.float32), np.ones(1, np.float32))
OPTIONS = TrainingOptions(learning_rate=0.01, warmup_epochs=2)
SITES = {name: {"classes": CLASSES, "images": 24} for name in ("north", "south")}


@pytest.fixture
def body(tmp_path):
    return load(initial_body(tmp_path / "body.npz")).variables


@pytest.fixture
def train(tmp_path, body, monkeypatch):
    """Train north alone; what was written. With Keras: simulator/test_local_training.py."""
    monkeypatch.setattr(trainer, "LocalModel", LocalModel)
    (tmp_path / "sites.json").write_text(json.dumps(SITES))
    north, south = (ArraySite(name, str(tmp_path / "sites.json")) for name in SITES)

    def call(options=OPTIONS, *, labelled=(), both=False, manifest=None, **settings):
        variables = wire.join(body, dict.fromkeys(labelled, COLUMN))
        initial = Checkpoint(variables, {"head_features": FEATURES, **(manifest or {})})
        measured_at = {"south": south, "north": north} if both else {"north": north}
        settings = {"measured_at": measured_at, "facts": {"method": "individual"}, **settings}
        out = tmp_path / "out"
        train_alone(north, options, initial, out=out, **{"rounds": 2, **settings})
        lines = (out / "rounds.jsonl").read_text().splitlines()
        rounds = [json.loads(line) for line in lines]
        models = {which: load(out / f"{which}.npz") for which in ("last", "best")}
        return SimpleNamespace(rounds=rounds, **models)

    return call


@pytest.fixture
def losses(monkeypatch):
    """Let every model have the loss that is written here, and training only add 1 to a bias."""

    def count(model, *_, **options):
        model.assign({"head/bias": model.variables()["head/bias"] + 1})

    monkeypatch.setattr(LocalModel, "train", count)
    monkeypatch.setattr(LocalModel, "warm_up", lambda *_: None)

    def put(*values):
        coming = iter(values)
        monkeypatch.setattr(LocalModel, "evaluate", lambda *_: {"bce": next(coming)})

    return put


def same(one, other):
    return all(value.tobytes() == other[name].tobytes() for name, value in one.items())


def test_every_model_is_measured_at_all_sites_before_it_is_trained_and_the_final_one(train, body):
    calls, facts = [], {"seed": 5, "job": "a", "best": {"round": 9}}
    progress = {"progress": lambda *so_far: calls.append(so_far)}
    written = train(rounds=3, both=True, manifest=facts, **progress)
    assert calls == [(1, 3), (2, 3), (3, 3)]
    assert [line["round"] for line in written.rounds] == [0, 1, 2, 3]
    for line in written.rounds:
        north, south = line["sites"]["north"], line["sites"]["south"]
        assert north != south
        assert line["mean_validation_bce"] == pytest.approx((north + south) / 2)
        assert 0 < line["mean_validation_auroc"] < 1
        assert line["validate_seconds"] > 0
        assert (line["train_seconds"] is None) == (line["round"] == 3)
    variables, columns = wire.split(written.best.variables)
    assert variables.keys() == body.keys() and tuple(columns) == CLASSES
    assert all(kernel.shape == (FEATURES,) for kernel, _ in columns.values())
    sites = ["north", "south"]
    trained = {"sites": sites, "last_round": 2, "rounds": [[0, 2, sites]]}
    auroc = written.last.manifest["validation"]["auroc"]
    assert auroc.keys() == {*sites} and all(of.keys() == {*CLASSES} for of in auroc.values())
    assert written.last.manifest == {
        "format": 1, "head_features": FEATURES, "seed": 5, "method": "individual", "round": 3,
        "classes": dict.fromkeys(CLASSES, trained), "best": written.best.manifest["best"],
        "validation": {"round": 3, "auroc": auroc}, **made_now(),
    }  # fmt: skip


def test_a_class_without_a_negative_is_marked_and_does_not_choose_the_best(train, monkeypatch):
    labels = np.float32([[0, 1], [1, 1]])
    monkeypatch.setattr(ArraySite, "training_labels", labels)
    measured = {"bce": 9.0} | {f"bce/{c}": i for i, c in enumerate(CLASSES)}
    monkeypatch.setattr(LocalModel, "evaluate", lambda *_: measured)
    best = train(labelled=CLASSES).best
    assert best.manifest["best"]["value"] == 0
    lacking = {name: of.get("lacking") for name, of in train().last.manifest["classes"].items()}
    assert lacking == {CLASSES[0]: None, CLASSES[1]: {"north": "negative"}}


def test_a_round_is_as_many_passes_as_the_options_say(train):
    one = train(TrainingOptions(learning_rate=0.01, epochs=2), rounds=2)
    other = train(TrainingOptions(learning_rate=0.01, epochs=1), rounds=4)
    assert same(one.last.variables, other.last.variables)
    assert one.rounds[1]["sites"] == other.rounds[2]["sites"]
    assert one.rounds[0]["images"] == 2 * other.rounds[0]["images"] == 2 * SITES["north"]["images"]


class TestBestModel:
    def test_it_is_the_model_that_its_round_starts_from(self, train, losses):
        losses(9, 3, 1, 2)
        written = train(rounds=3)
        best = {"round": 2, "metric": "bce", "value": 1, "sites": {"north": 1}}
        assert written.best.manifest["best"] == best
        assert written.best.manifest["round"] == 2 and written.last.manifest["round"] == 3
        losses(9, 3, 2)
        assert same(written.best.variables, train(rounds=2).last.variables)
        assert not same(written.best.variables, written.last.variables)

    @pytest.mark.parametrize(("values", "labelled", "best"), [
        ((9, 3, 1), (), 2),  # the final model may be it
        ((9, 2, 2), (), 1),  # of equally good ones the first
        ((1, 3, 2), ("Mass",), 2),  # none of round 0 that was warmed up
        ((9, math.nan, 5), (), 2),  # none without a loss
    ])  # fmt: skip
    def test_it_has_the_smallest_loss(self, train, losses, values, labelled, best):
        losses(*values)
        written = train(labelled=labelled)
        assert written.best.manifest["best"]["round"] == best
        assert same(written.best.variables, written.last.variables) == (best == 2)

    def test_a_model_of_round_0_that_needed_no_warm_up_may_be_it(self, train, losses):
        losses(1, 3, 2)
        before = {"Edema": {"sites": ["east"], "last_round": 4}, "Hernia": {"sites": ["east"]}}
        best = train(labelled=CLASSES, manifest={"classes": before}).best
        assert best.manifest["best"]["round"] == 0
        np.testing.assert_array_equal(best.variables["head/Mass/kernel"], COLUMN[0])
        assert best.manifest["classes"] == {"Edema": before["Edema"]}

    def test_an_undefined_loss_is_written_as_none_and_no_loss_is_an_error(self, train, losses):
        losses(9, math.nan, 5)
        line = train().rounds[1]
        assert (line["mean_validation_bce"], line["sites"]) == (None, {"north": None})
        losses(*[math.nan] * 3)
        with pytest.raises(InputError, match=r"no model of 3 rounds .* 1e\+38 too high"):
            train(TrainingOptions(learning_rate=1e38, strategy="fedavg"))


@pytest.mark.parametrize(("values", "settings", "made"), [
    # Round 3 finds that the best is two rounds older, is finished, and its model is measured.
    ((9, 2, 3, 4, 5, 6, 7), {"patience": 2}, 5),
    ((9, 2, 3, 1, 5), {"patience": 1}, 4),  # the last model may still be the best
    ((9, 5, 6, 4, 6, 6, 6), {"patience": 2}, 7),  # a better one restarts the count
    ((1, math.nan, math.nan, 5), {"patience": 1, "rounds": 3}, 4),  # no best one yet
    ((9, 1, 2, 3, 4), {"patience": 0, "rounds": 4}, 5),  # 0: never
])  # fmt: skip
def test_training_stops_when_the_best_is_patience_rounds_old(train, losses, values, settings, made):
    losses(*values)
    written = train(**{"rounds": 6, **settings})
    assert [line["round"] for line in written.rounds] == list(range(made))
    assert [line["train_seconds"] is None for line in written.rounds].index(True) == made - 1
    defined = [value for value in values[1:made] if not math.isnan(value)]
    assert written.best.manifest["best"]["value"] == min(defined)


@pytest.mark.parametrize(("strategy", "kept"), [("fedbn+", True), ("fedavg", False)])
def test_batch_norm_is_frozen_or_trained_and_two_trainings_agree(train, body, strategy, kept):
    options = TrainingOptions(strategy=strategy, learning_rate=0.01)
    last = train(options).last.variables
    for name in BATCH_NORM:
        assert np.array_equal(last[name], body[name]) == kept
    assert not np.array_equal(last["dense/kernel"], body["dense/kernel"])
    assert same(last, train(options).last.variables)


def test_random_weights_whose_batch_normalisation_would_be_frozen_are_refused(train, body):
    body |= {"bn/moving_mean": 0 * body["bn/moving_mean"]}
    body |= {"bn/moving_variance": body["bn/moving_variance"] ** 0}
    with pytest.raises(StrategyError, match="must have been trained"):
        train()
    assert train(TrainingOptions("fedavg", warmup_epochs=2)).rounds
