"""Importing classes into a model and removing them, and the manifest afterwards."""

import numpy as np
import pytest

from surgical_aggregation.checkpoints import class_changes
from surgical_aggregation.checkpoints.checkpoint import Checkpoint, digest, load, save
from surgical_aggregation.checkpoints.class_changes import import_classes, keep, remove
from surgical_aggregation.checkpoints.model_facts import facts_of
from surgical_aggregation.wire import variables as wire

BODY = {"conv/kernel": np.float32([4, 5]), "bn/gamma": np.float32([1])}
CLASSES = ("Edema", "Mass", "Nodule/Mass")
AUROC = {"a": {"Edema": 0.75, "Mass": 0.5}, "b": {"Mass": 0.25}}


def model(*classes, body=BODY, **facts):
    """Every class was trained by the site of its first letter; a variable has one moment."""
    columns = {name: (np.float32([n, 2]), np.float32([3])) for n, name in enumerate(classes)}
    trained = {name: {"sites": [name[0]], "last_round": 4} for name in classes}
    variables = wire.join(body, columns)
    moments = {f"mean/{name}": np.ones(1) for name in variables}
    return Checkpoint(variables, {"head_features": 2, "classes": trained, **facts}, moments)


VALIDATION = {"round": 5, "auroc": AUROC}


class TestImport:
    source = model("Edema", "Hernia", "Mass", round=5, created="2026-01-01", validation=VALIDATION)

    def test_columns_are_added_and_nothing_else_changes(self, tmp_path):
        own = model("Nodule", round=2, best={"round": 1}, features={"c": 1})
        after = import_classes(own, self.source, ["Hernia", "Edema"])
        assert wire.classes_of(after.variables) == ("Edema", "Hernia", "Nodule")
        for name, value in after.variables.items():
            assert value is {**self.source.variables, **own.variables}[name]
        assert after.moments == own.moments
        changed = {"best": {"round": 1}, "classes": 0}
        assert {**after.manifest, **changed} == {**own.manifest, "classes": 0}
        save(after, tmp_path / "new.npz")
        trained = facts_of(load(tmp_path / "new.npz")).trained
        assert trained["Nodule"] == facts_of(own).trained["Nodule"]
        assert trained["Edema"].sites == ("E",)
        source = {"model_sha256": digest(self.source.variables), "created": "2026-01-01"}
        assert trained["Edema"].imported == {**source, "round": 5, "auroc": {"a": 0.75}}

    def test_a_refitted_class_was_trained_where_its_column_was_fitted(self):
        lacks = {"sites": ["E"], "rounds": [], "last_round": 4, "lacking": {"E": "positive"}}
        manifest = {**self.source.manifest, "classes": {"Edema": lacks}}
        source = Checkpoint(self.source.variables, manifest)
        fitted = {"refit": {"site": "me", "images": 80}}
        own = {"Edema": wire.split(source.variables)[1]["Edema"]}
        after = class_changes.with_columns(model("Nodule"), source, own, {"Edema": fitted})
        of = facts_of(after).trained["Edema"]
        assert (of.sites, of.rounds, of.last_round, of.never_learned) == (("me",), (), None, None)
        assert of.imported["refit"] == fitted["refit"]
        assert facts_of(import_classes(model("Nodule"), source, ["Edema"])).never_learned

    def test_a_class_that_comes_back_is_not_removed_any_more(self):
        back = import_classes(remove(self.source, ["Edema", "Mass"]), self.source, ["Edema"])
        assert {*back.manifest["removed"]} == {"Mass"}

    @pytest.mark.parametrize(("body", "reason"), [
        ({**BODY, "bn/gamma": np.float32([1.0000001])}, "1 of 2 variables, e.g. bn/gamma"),
        ({**BODY, "bn/gamma": BODY["bn/gamma"].astype(float)}, "1 of 2 variables, e.g. bn/gamma"),
        ({**BODY, "bn/gamma": np.float32([1, 1])}, "different networks"),
        ({"conv/kernel": BODY["conv/kernel"]}, "different networks"),
    ])  # fmt: skip
    def test_another_body_is_refused_with_the_reason(self, body, reason):
        with pytest.raises(ValueError, match=rf"{reason} \(sha256 [0-9a-f]+… and [0-9a-f]+…\)"):
            import_classes(model("Nodule", body=body), self.source, ["Edema"])

    @pytest.mark.parametrize("part", [
        np.zeros((2, 2), np.float32), np.zeros(3, np.float32), np.zeros(2, bool),
        np.float32([0, np.nan]), np.float32([np.inf, 0]),
    ])  # fmt: skip
    def test_a_column_that_no_model_can_use_is_refused(self, part):
        source = Checkpoint({**self.source.variables, "head/Edema/kernel": part}, {})
        with pytest.raises(
            ValueError, match="column 'Edema' needs 2 weights and a bias, all finite"
        ):
            import_classes(model("Nodule"), source, ["Edema"])
        assert import_classes(model("Nodule"), source, ["Mass"])
        assert import_classes(Checkpoint(model("Nodule").variables, {}), source, ["Mass"])

    def test_another_spelling_of_an_own_class_is_refused(self):
        with pytest.raises(ValueError, match="'EDEMA' and 'Edema' are spellings of one class"):
            import_classes(model("EDEMA"), self.source, ["Edema"])


class TestRemove:
    def test_takes_columns_and_moments_of_the_classes_and_of_no_other(self):
        before = model(*CLASSES)
        after = remove(before, ["Mass"])
        kept = {name for name in before.variables if not name.startswith("head/Mass/")}
        assert len(kept) == 6 and set(after.variables) == kept
        assert set(after.moments) == {f"mean/{name}" for name in kept}
        assert all(after.variables[name] is before.variables[name] for name in kept)

    def test_the_manifest_says_when_they_were_removed_and_who_had_trained_them(self):
        before = model(*CLASSES, round=5, job="a", best={"round": 3})
        removed = {name: {"round": 5, "sites": [name[0]]} for name in ("Mass", "Nodule/Mass")}
        assert remove(remove(before, ["Mass"]), ["Nodule/Mass"]).manifest == {
            "head_features": 2, "round": 5, "job": "a",  # it can be continued
            "classes": {"Edema": before.manifest["classes"]["Edema"]}, "removed": removed,
        }  # fmt: skip
        assert "best" in before.manifest  # which was measured with those classes
        after = remove(Checkpoint(before.variables, {"head_features": 2}), ["Mass"])  # of no run
        assert after.manifest["removed"] == {"Mass": {"round": 0, "sites": []}}

    def test_what_sites_measured_of_a_removed_class_goes_with_it(self):
        after = remove(model(*CLASSES, validation=VALIDATION), ["Mass"])
        assert after.manifest["validation"] == {"round": 5, "auroc": {"a": {"Edema": 0.75}}}

    def test_some_are_kept_and_all_others_removed(self):
        before = model(*CLASSES)
        after, same = keep(before, ["Nodule/Mass", "Edema"]), remove(before, ["Mass"])
        assert after.manifest == same.manifest and after.variables == same.variables
        assert keep(before, CLASSES) is before


def imported(source, classes):
    return import_classes(model("Mass"), source, classes)


UNKNOWN = r"must be among \['Edema', 'Mass', 'Nodule/Mass'\]; got \['mass'\]"


@pytest.mark.parametrize(("change", "classes", "reason"), [
    *((change, ["Edema", "mass"], UNKNOWN) for change in (imported, remove, keep)),
    *((change, [], "got none") for change in (imported, remove, keep)),
    (imported, ["Edema", "Mass"], r"already has \['Mass'\]"),
    (remove, CLASSES, "at least one class"),
])  # fmt: skip
def test_unknown_classes_none_all_or_own_ones_are_refused(change, classes, reason):
    with pytest.raises(ValueError, match=reason):
        change(model(*CLASSES), classes)
