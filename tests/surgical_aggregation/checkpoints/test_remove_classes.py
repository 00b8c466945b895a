import numpy as np
import pytest

from surgical_aggregation.checkpoints.checkpoint import Checkpoint
from surgical_aggregation.checkpoints.remove_classes import keep, remove
from surgical_aggregation.wire import variables as wire

COLUMN = (np.float32([1, 2]), np.float32([3]))
CLASSES = ("Edema", "Mass", "Nodule/Mass")


@pytest.fixture
def model():
    variables = wire.join({"conv/kernel": np.float32([4])}, dict.fromkeys(CLASSES, COLUMN))
    facts = {"head_features": 2, "round": 5, "job": "a", "best": {"round": 3}}
    classes = {name: {"sites": [name[0]], "last_round": 4} for name in CLASSES}
    moments = {f"mean/{name}": np.ones(1) for name in variables}
    return Checkpoint(variables, {**facts, "classes": classes}, moments)


def test_takes_columns_and_moments_of_the_classes_and_of_no_other(model):
    after = remove(model, ["Mass"])
    kept = {name for name in model.variables if not name.startswith("head/Mass/")}
    assert len(kept) == 5 and set(after.variables) == kept
    assert set(after.moments) == {f"mean/{name}" for name in kept}
    assert all(after.variables[name] is model.variables[name] for name in kept)


def test_the_manifest_says_when_they_were_removed_and_who_had_trained_them(model):
    after = remove(remove(model, ["Mass"]), ["Nodule/Mass"]).manifest
    assert after == {
        "head_features": 2, "round": 5, "job": "a",  # it can be continued
        "classes": {"Edema": model.manifest["classes"]["Edema"]},
        "removed": {
            "Mass": {"round": 5, "sites": ["M"]}, "Nodule/Mass": {"round": 5, "sites": ["N"]},
        },
    }  # fmt: skip
    assert "best" in model.manifest  # which was measured with those classes
    after = remove(Checkpoint(model.variables, {"head_features": 2}), ["Mass"])  # of no run
    assert after.manifest["removed"] == {"Mass": {"round": 0, "sites": []}}


@pytest.mark.parametrize(
    ("classes", "reason"),
    [
        (["Edema", "mass"], r"among \['Edema', 'Mass', 'Nodule/Mass'\]; got \['mass'\]"),
        ([], "got none"),
        (CLASSES, "at least one class"),
    ],
)
def test_unknown_classes_none_or_all_are_refused(model, classes, reason):
    with pytest.raises(ValueError, match=reason):
        remove(model, classes)


def test_what_sites_measured_of_a_removed_class_goes_with_it(model):
    auroc = {"a": {"Edema": 0.5, "Mass": 0.75}, "b": {"Mass": 0.25}}
    measured = {**model.manifest, "validation": {"round": 5, "auroc": auroc}}
    after = remove(Checkpoint(model.variables, measured), ["Mass"])
    assert after.manifest["validation"] == {"round": 5, "auroc": {"a": {"Edema": 0.5}}}


def test_some_are_kept_and_all_others_removed(model):
    after = keep(model, ["Nodule/Mass", "Edema"])
    assert after.manifest == remove(model, ["Mass"]).manifest
    assert after.variables.keys() == remove(model, ["Mass"]).variables.keys()
    assert keep(model, CLASSES) is model
    for classes in ([], ["mass"]):
        with pytest.raises(ValueError, match="classes to keep must be among"):
            keep(model, classes)
