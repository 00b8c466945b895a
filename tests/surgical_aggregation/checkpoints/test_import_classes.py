import numpy as np
import pytest

from surgical_aggregation.checkpoints.checkpoint import Checkpoint, digest, load, save
from surgical_aggregation.checkpoints.import_classes import import_classes
from surgical_aggregation.checkpoints.model_facts import facts_of
from surgical_aggregation.wire import variables as wire

BODY = {"conv/kernel": np.float32([4, 5]), "bn/gamma": np.float32([1])}


def model(classes, body=BODY, **facts):
    columns = {
        name: (np.float32([number, 2]), np.float32([3])) for number, name in enumerate(classes)
    }
    trained = {
        name: {"sites": ["a"], "last_round": 4, "rounds": [[0, 4, ["a"]]]} for name in classes
    }
    return Checkpoint(wire.join(body, columns), {"head_features": 2, "classes": trained, **facts})


@pytest.fixture
def source():
    validation = {"round": 5, "auroc": {"a": {"Edema": 0.75, "Mass": 0.5}, "b": {"Mass": 0.25}}}
    return model(["Edema", "Hernia", "Mass"], round=5, created="2026-01-01", validation=validation)


def test_columns_are_added_and_nothing_else_changes(source, tmp_path):
    own = model(["Nodule"], round=2, best={"round": 1}, features={"c": 1})
    own.moments["mean/conv/kernel"] = np.ones(2)
    after = import_classes(own, source, ["Hernia", "Edema"])
    assert wire.classes_of(after.variables) == ("Edema", "Hernia", "Nodule")
    for name, value in own.variables.items():
        assert after.variables[name] is value
    for name in ("Edema", "Hernia"):
        for part in ("kernel", "bias"):
            assert after.variables[f"head/{name}/{part}"] is source.variables[f"head/{name}/{part}"]
    assert after.moments is own.moments
    assert {**after.manifest, "best": {"round": 1}, "classes": 0} == {**own.manifest, "classes": 0}
    assert after.manifest["classes"]["Nodule"] == own.manifest["classes"]["Nodule"]
    save(after, tmp_path / "new.npz")
    facts = facts_of(load(tmp_path / "new.npz"))
    assert facts.trained["Edema"].sites == ("a",)
    assert facts.trained["Edema"].imported == {
        "model_sha256": digest(source.variables), "round": 5, "created": "2026-01-01",
        "auroc": {"a": 0.75},
    }  # fmt: skip
    assert facts.trained["Nodule"].imported is None


@pytest.mark.parametrize(("body", "reason"), [
    ({**BODY, "bn/gamma": np.float32([1.0000001])}, r"differ in 1 of 2 variables, e.g. bn/gamma"),
    ({**BODY, "bn/gamma": np.float32([1, 1])}, "different networks"),
    ({"conv/kernel": BODY["conv/kernel"]}, "different networks"),
])  # fmt: skip
def test_another_body_is_refused_with_the_reason(source, body, reason):
    with pytest.raises(ValueError, match=rf"{reason} \(sha256 [0-9a-f]+… and [0-9a-f]+…\)"):
        import_classes(model(["Nodule"], body), source, ["Edema"])


@pytest.mark.parametrize(
    ("classes", "reason"),
    [
        (["edema"], r"among \['Edema', 'Hernia', 'Mass'\]; got \['edema'\]"),
        ([], "got none"),
        (["Edema", "Mass"], r"has \['Mass'\] already"),
    ],
)
def test_unknown_classes_none_or_own_ones_are_refused(source, classes, reason):
    with pytest.raises(ValueError, match=reason):
        import_classes(model(["Mass"]), source, classes)
