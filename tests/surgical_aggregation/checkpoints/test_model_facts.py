"""The facts in a model's manifest, and those that an older one lacks."""

import numpy as np
import pytest

from surgical_aggregation.checkpoints import model_facts
from surgical_aggregation.checkpoints.checkpoint import Checkpoint, load, save
from surgical_aggregation.checkpoints.model_facts import ClassTraining, TrainedRounds, facts_of
from surgical_aggregation.wire import variables as wire

COLUMN = (np.float32([1]), np.float32([2]))
VARIABLES = wire.join({"conv/kernel": np.float32([1])}, {"Mass": COLUMN, "Edema": COLUMN})
MANIFEST = {
    "backbone": "small_densenet", "hidden": 0, "image_size": 64, "input": {"channels": 3},
    "created": "2026-01-31", "version": "1.2", "strategy": "fedbn+", "initial_body_sha256": "abc",
    "round": 7, "classes": {"Mass": {"sites": ["a"], "last_round": 6, "rounds": [[2, 6, ["a"]]]}},
    "validation": {"round": 7, "auroc": {"a": {"Mass": 0.75}}},
}  # fmt: skip


def facts(**manifest):
    return facts_of(Checkpoint(VARIABLES, manifest))


def test_a_whole_manifest_is_read_from_disk_and_lacks_nothing(tmp_path):
    save(Checkpoint(VARIABLES, MANIFEST), tmp_path / "a.npz")
    read = facts_of(load(tmp_path / "a.npz"))
    assert read.lacks == () and read.classes == ("Edema", "Mass")
    trained = ClassTraining(("a",), 6, (TrainedRounds(2, 6, ("a",)),))
    assert read.trained == {"Mass": trained}
    network = ("backbone", "hidden", "image_size", "input")
    assert read.network == {key: MANIFEST[key] for key in network}
    assert (read.created, read.version, read.strategy) == ("2026-01-31", "1.2", "fedbn+")
    assert (read.round, read.validation.auroc) == (7, {"a": {"Mass": 0.75}})


@pytest.mark.parametrize("key", model_facts.CONTRACT)
def test_an_older_manifest_is_read_and_says_what_it_lacks(key):
    assert facts(**{k: v for k, v in MANIFEST.items() if k != key}).lacks == (key,)


def test_an_empty_one_lacks_all_and_an_older_class_has_no_rounds():
    assert facts().lacks == tuple(model_facts.CONTRACT)
    old = facts(classes={"Mass": {"sites": ["a", "b"], "last_round": 6}})
    assert old.trained == {"Mass": ClassTraining(("a", "b"), 6)}
