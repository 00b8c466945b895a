"""The surgical job in FLARE's simulator: models, curves, faults, evaluation of its model."""

import numpy as np
import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

import faults
import tiny_job
from cxr_study.reports.run.cross_site_results import read
from secrecy import names
from simulated import SITES, TWO, UNION, plain, same
from surgical_aggregation.wire import variables as wire

ALL = {**SITES, "east": {"classes": ["Edema", "Hernia"], "images": 20}}  # nobody trained Hernia


class TestResult:
    def test_the_model_has_every_class_of_every_site_and_says_who_trained_it(self, runs):
        assert list(wire.classes_of(runs.first.best.variables)) == UNION
        assert list(wire.classes_of(runs.first.last.variables)) == UNION
        classes = runs.first.last.manifest["classes"]
        labelled = {c: [site for site in SITES if c in SITES[site]["classes"]] for c in UNION}
        assert {name: facts["sites"] for name, facts in classes.items()} == labelled

    def test_the_final_model_was_measured_and_the_best_tested_on_each_sites_classes(self, runs):
        measured = runs.first.measured()
        best = runs.first.events("best")[-1]
        losses = [measured[site]["SRV_last"]["bce"] for site in SITES]
        assert best["value"] <= np.mean(losses) + 1e-12
        for site, entry in SITES.items():
            tested = {m.removeprefix("bce/") for m in measured[site]["SRV_best"] if "bce/" in m}
            assert tested == set(entry["classes"])

    def test_the_recipe_ends_with_the_same_models_bit_for_bit(self, runs):
        for name in ("best", "last"):
            first, second = runs.first.checkpoint(name), runs.recipe.checkpoint(name)
            assert first.manifest == second.manifest
            assert list(first.variables) == list(second.variables) and same(first, second)


def test_what_the_server_accepts_is_in_files_and_not_in_its_memory(undisturbed):
    accepted = sorted((undisturbed.folder / "struck").glob("accepted-*"))
    expected = [f"accepted-{round_}-{site}" for round_ in range(5) for site in TWO]
    assert [path.name for path in accepted] == expected
    assert [path.read_text() for path in accepted] == [""] * len(accepted)


class TestTracking:
    """The curves in TensorBoard's files are what FLARE's own artifacts hold."""

    @pytest.mark.parametrize("site", SITES)
    def test_every_round_of_the_sites_classes_has_what_the_site_measured(self, runs, site):
        events = EventAccumulator(str(runs.first.server / "tb_events" / site)).Reload()
        scalars = {tag: events.Scalars(tag) for tag in events.Tags()["scalars"]}
        found = {tag: {e.step: e.value for e in points} for tag, points in scalars.items()}
        for metric in ("bce", "auroc"):
            tags = {f"{metric}/{name}" for name in SITES[site]["classes"]} | {metric}
            assert {tag for tag in found if tag.split("/")[0] == metric} == tags
            assert all(list(found[tag]) == [0, 1, 2, 3] for tag in tags)  # 3: the final model
        assert list(found["train_loss"]) == [0, 1, 2]
        rounds = runs.first.round_metrics()
        assert list(rounds) == [0, 1, 2]
        for round_, values in ((round_, of[site]) for round_, of in rounds.items()):
            assert "train_loss" in values
            for tag in {*found} & {*values}:
                assert found[tag][round_] == np.float32(values[tag]), tag
        final = runs.first.measured()[site]
        assert found["bce"][3] == np.float32(final["SRV_last"]["bce"])
        best = runs.first.best.manifest["best"]["round"]
        for name, value in final["SRV_best"].items():
            assert found[f"test/{name}"] == {best: np.float32(value)}

    def test_no_curve_is_written_at_a_site(self, runs):
        at_server = list(runs.first.server.rglob("events.out.*"))
        assert sorted(runs.first.workspace.rglob("events.out.*")) == sorted(at_server)
        assert {path.parent.name for path in at_server} == {*SITES, "simulator_server"}
        assert not list(runs.recipe.workspace.rglob("events.out.*"))


class TestFaults:
    def test_bad_results_are_on_record_and_the_run_goes_on_to_its_last_round(self, runs):
        reasons = {
            ("west", 1): "(TASK_RESULT_FILTER_ERROR)",
            ("west", 2): "(TASK_RESULT_FILTER_ERROR)",
            ("west", 3): "missing ['Fracture', 'Support Devices']",
            ("south", 2): "'dense/kernel' has 12 values that are NaN or infinite",
            ("north", 3): "undeclared ['Pneumonia'], missing []",
            ("north", 1): "it could not be read (RuntimeError: failed to download from north",
            ("west", 4): "'dense/kernel' has 12 values that moved by more than 6.55e+04",
            **{("east", round_): "class 'EDEMA' is known as 'Edema'" for round_ in range(5)},
        }
        refused = {(e["site"], e["round"]): e["reason"] for e in runs.faulty.events("refused")}
        assert set(refused) == set(reasons)
        assert all(reason in refused[of] for of, reason in reasons.items())
        assert [event["round"] for event in runs.faulty.events("round")] == list(range(5))

    def test_no_site_learns_how_another_spells_a_class(self, runs):
        assert "EDEMA" not in runs.faulty.last.manifest["classes"]
        for site, (own, other) in {
            "north": (b"Edema", b"EDEMA"), "south": (b"Edema", b"EDEMA"),
            "east": (b"EDEMA", b"Edema"),
        }.items():  # fmt: skip
            files = runs.faulty.files(site)
            assert other not in runs.faulty.received(site)
            assert [path for path, content in files.items() if other in content] == []
            assert any(own in content for content in files.values())  # the search can find it
        assert b"Edema" in runs.faulty.received("north")

    def test_a_result_that_could_not_be_read_is_sent_again_and_counts(self, runs):
        assert faults.accepted(runs.faulty.folder / "struck", "north", 1).exists()

    def test_a_column_that_no_site_sends_stays_and_no_value_too_far_away_drops_a_round(self, runs):
        last, classes = runs.faulty.last, runs.faulty.last.manifest["classes"]
        for name in ("head/Support Devices/kernel", "head/Support Devices/bias"):
            assert last.variables[name].tobytes() == runs.faulty.after(1).variables[name].tobytes()
        facts = {name: classes[name]["last_round"] for name in ("Support Devices", "Fracture")}
        assert facts == {"Support Devices": 0, "Fracture": 4}
        assert runs.faulty.events("dropped") == [] and last.manifest["round"] == 5
        assert all(np.isfinite(value).all() for value in last.moments.values())


@pytest.fixture(scope="module")
def evaluated(runs, tmp_path_factory):
    folder = tmp_path_factory.mktemp("evaluation")
    job = tiny_job.make(folder, ALL, job="evaluation", settings={"report_counts": True})
    return plain(job, folder, ALL, CXR_MODEL=str(runs.first.server / "models/best.npz"))


def test_every_site_measures_the_same_as_in_the_training_job_bit_for_bit(runs, evaluated):
    def measured(run):
        rows = [row for row in read(run.server).itertuples() if row.site in SITES]
        return {(row.class_name, row.site): (row.auroc, row.bce) for row in rows}

    trained = measured(runs.first)
    assert measured(evaluated) == trained
    assert set(trained) == {(name, site) for site in SITES for name in SITES[site]["classes"]}
    for row in read(evaluated.server).itertuples():  # counts travel where they are asked for
        assert row.positives + row.negatives == ALL[row.site]["images"]
    assert read(runs.first.server)["positives"].isna().all()
    named = [event["event"] for event in evaluated.record]
    assert named == ["started", "sites", *["declared"] * len(ALL), "ended"]
    assert not list(evaluated.workspace.rglob("*.npz"))


def test_a_site_that_took_no_part_in_training_measures_the_trained_classes(evaluated):
    measured = read(evaluated.server)
    assert measured[measured["site"] == "east"]["class_name"].tolist() == ["Edema"]
    log = (evaluated.folder / "workspace.log").read_text(encoding="utf-8")
    assert "test split of east: mean AUROC" in log
    assert "over 1 of its 1 classes, 20 images" in log
    assert "best model" not in log


@pytest.mark.parametrize("site", ALL)
def test_no_site_receives_the_name_or_a_column_of_a_class_that_it_does_not_label(evaluated, site):
    labelled, received = set(ALL[site]["classes"]), evaluated.received(site)
    found = {name for name in [*UNION, "Hernia"] if names(received, name)}
    assert found - {"Hernia"} == labelled - {"Hernia"}
    assert found <= labelled
