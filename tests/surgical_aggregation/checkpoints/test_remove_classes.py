import numpy as np
import pytest

from surgical_aggregation.checkpoints.checkpoint import Checkpoint
from surgical_aggregation.checkpoints.remove_classes import RetirementError, retire
from surgical_aggregation.wire import variables as wire

COLUMN = (np.float32([1, 2]), np.float32([3]))
CLASSES = ("Edema", "Mass", "Nodule/Mass")


@pytest.fixture
def model():
    variables = wire.join({"conv/kernel": np.float32([4])}, dict.fromkeys(CLASSES, COLUMN))
    manifest = {
        "head_features": 2,
        "round": 5,
        "job": "a",
        "classes": {name: {"sites": [name[0]], "last_round": 4} for name in CLASSES},
        "best": {"round": 3},
    }
    return Checkpoint(variables, manifest, {f"mean/{name}": np.ones(1) for name in variables})


def test_takes_columns_and_moments_of_the_class_and_of_no_other(model):
    after = retire(model, ["Mass"])
    kept = {
        "conv/kernel",
        *(
            f"head/{name}/{part}"
            for name in ("Edema", "Nodule/Mass")
            for part in ("kernel", "bias")
        ),
    }
    assert set(after.variables) == kept
    assert set(after.moments) == {f"mean/{name}" for name in kept}
    assert all(after.variables[name] is model.variables[name] for name in kept)


def test_the_manifest_says_when_and_who_had_taught_it(model):
    after = retire(model, ["Nodule/Mass", "Mass"]).manifest
    assert after["retired"] == {
        "Mass": {"round": 5, "sites": ["M"]},
        "Nodule/Mass": {"round": 5, "sites": ["N"]},
    }
    assert list(after["classes"]) == ["Edema"]
    assert (after["round"], after["job"]) == (5, "a")  # it can be continued


def test_earlier_retirements_stay_on_record(model):
    after = retire(retire(model, ["Mass"]), ["Edema"]).manifest
    assert sorted(after["retired"]) == ["Edema", "Mass"]


def test_the_best_record_goes_because_it_measured_other_classes(model):
    assert "best" not in retire(model, ["Mass"]).manifest
    assert "best" in model.manifest


def test_an_unknown_class_is_refused_with_those_there_are(model):
    with pytest.raises(
        RetirementError, match=r"among \['Edema', 'Mass', 'Nodule/Mass'\]; got \['mass'\]"
    ):
        retire(model, ["Edema", "mass"])


def test_no_class_at_all_is_refused(model):
    with pytest.raises(RetirementError, match="got none"):
        retire(model, [])


def test_a_model_that_no_run_made_can_lose_a_class_too(model):
    after = retire(Checkpoint(model.variables, {"head_features": 2}), ["Mass"])
    assert after.manifest["retired"] == {"Mass": {"round": 0, "sites": []}}


def test_all_classes_are_refused(model):
    with pytest.raises(RetirementError, match="at least one class"):
        retire(model, ["Edema", "Mass", "Nodule/Mass"])
