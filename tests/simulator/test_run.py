"""The surgical job in FLARE's simulator: what it makes, what it repeats, what it tells whom."""

import json

import numpy as np
import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from cxr_study.reports.run.cross_site_results import RESULTS_FILE
from secrecy import forms
from surgical_aggregation.checkpoints.checkpoint import load
from surgical_aggregation.wire import variables as wire
from tiny_run import SITES

UNION = sorted({name for site in SITES.values() for name in site["classes"]})


def files(folder):
    return [path for path in folder.rglob("*") if path.is_file()]


class TestResult:
    def test_global_model_has_a_column_for_every_class_of_every_site(self, runs):
        for checkpoint in (runs.first.best, runs.first.last):
            assert list(wire.classes_of(checkpoint.variables)) == UNION

    def test_manifest_says_who_taught_which_class(self, runs):
        taught = {name: c["sites"] for name, c in runs.first.last.manifest["classes"].items()}
        assert taught == {
            "Edema": ["north", "south"],
            "Fracture": ["south", "west"],
            "Nodule/Mass": ["north"],
            "Pleural Effusion": ["north"],
            "Support Devices": ["west"],
            "Épanchement": ["south"],
        }

    def test_frozen_batch_normalisation_is_the_initial_bodys_to_the_last_bit(
        self, runs, initial_body
    ):
        start = load(initial_body).variables
        last = runs.first.last.variables
        for name in start:
            assert (last[name].tobytes() == start[name].tobytes()) == name.startswith("bn/")

    def test_final_model_was_measured_and_is_not_better_than_the_best(self, runs):
        measured = json.loads(
            (runs.first.server / "cross_site_val" / "cross_val_results.json").read_text()
        )
        assert all("bce" in measured[site]["SRV_last"] for site in SITES)
        best = [event for event in runs.first.record if event["event"] == "best"][-1]
        losses = [measured[site]["SRV_last"]["bce"] for site in SITES]
        assert best["value"] <= np.mean(losses) + 1e-12

    def test_best_model_was_tested_at_every_site_on_its_own_classes(self, runs):
        measured = json.loads(
            (runs.first.server / "cross_site_val" / "cross_val_results.json").read_text()
        )
        for site, entry in SITES.items():
            names = {
                m.partition("/")[2] for m in measured[site]["SRV_best"] if m.startswith("bce/")
            }
            assert names == set(entry["classes"])

    def test_both_models_are_outside_the_jobs_workspace_too(self, runs):
        outside = runs.first.workspace / "server" / "checkpoints" / "simulate_job"
        for name in ("best.npz", "last.npz"):
            inside = runs.first.server / "models" / name
            assert (outside / name).read_bytes() == inside.read_bytes()

    def test_flares_own_metrics_artifact_has_every_round_and_site(self, runs):
        lines = (runs.first.server / "metrics" / "round_metrics.jsonl").read_text().splitlines()
        rounds = [json.loads(line) for line in lines]
        assert [entry["round"] for entry in rounds] == [0, 1, 2]
        for entry in rounds:
            assert sorted(site["name"] for site in entry["sites"]) == sorted(SITES)


def curves(runs, site):
    """Tag -> {step: value}, as TensorBoard reads them."""
    events = EventAccumulator(str(runs.first.server / "tb_events" / site)).Reload()
    return {
        tag: {event.step: event.value for event in events.Scalars(tag)}
        for tag in events.Tags()["scalars"]
    }


class TestTracking:
    """The curves in TensorBoard's files are what FLARE's own artifacts hold."""

    @pytest.mark.parametrize("site", SITES)
    def test_every_round_of_every_class_of_the_site_is_there_and_of_no_other(self, runs, site):
        found = curves(runs, site)
        for metric in ("bce", "auroc"):
            tags = {f"{metric}/{name}" for name in SITES[site]["classes"]} | {metric}
            assert {tag for tag in found if tag.split("/")[0] == metric} == tags
            assert all(list(found[tag]) == [0, 1, 2, 3] for tag in tags)  # 3: the final model
        assert list(found["train_loss"]) == [0, 1, 2]

    @pytest.mark.parametrize("site", SITES)
    def test_the_values_are_those_that_the_site_measured(self, runs, site):
        found = curves(runs, site)
        lines = (runs.first.server / "metrics" / "round_metrics.jsonl").read_text().splitlines()
        for entry in map(json.loads, lines):
            (measured,) = [s["metrics"] for s in entry["sites"] if s["name"] == site]
            values = {metric["name"]: metric["value"] for metric in measured}
            for tag in {*found} & {*values}:
                assert found[tag][entry["round"]] == np.float32(values[tag]), tag
        final = json.loads((runs.first.server / RESULTS_FILE).read_text())[site]
        assert found["bce"][3] == np.float32(final["SRV_last"]["bce"])

    @pytest.mark.parametrize("site", SITES)
    def test_the_test_of_the_best_model_stands_at_its_round(self, runs, site):
        best = runs.first.best.manifest["best"]["round"]
        tested = json.loads((runs.first.server / RESULTS_FILE).read_text())[site]["SRV_best"]
        found = curves(runs, site)
        for name, value in tested.items():
            assert found[f"test/{name}"] == {best: np.float32(value)}

    def test_the_servers_own_curves_are_the_means_over_the_sites_that_measure(self, runs):
        sites = [curves(runs, site) for site in SITES]
        means = curves(runs, "simulator_server")
        assert set(means) == {tag for found in sites for tag in found if "test/" not in tag}
        for tag, curve in means.items():
            held = [found[tag] for found in sites if tag in found]
            expected = {step: np.mean([found[step] for found in held]) for step in held[0]}
            assert curve == pytest.approx(expected)

    def test_nothing_of_it_is_at_the_sites(self, runs):
        at_server = list(runs.first.server.rglob("events.out.*"))
        assert sorted(runs.first.workspace.rglob("events.out.*")) == sorted(at_server)
        assert {path.parent.name for path in at_server} == {*SITES, "simulator_server"}
        assert not list(runs.recipe.workspace.rglob("events.out.*"))


class TestRecipe:
    def test_it_ends_with_the_folders_models_bit_for_bit(self, runs):
        for name in ("best", "last"):
            first, second = getattr(runs.first, name), getattr(runs.recipe, name)
            assert first.manifest == second.manifest
            assert list(first.variables) == list(second.variables)
            for variable, value in first.variables.items():
                assert value.tobytes() == second.variables[variable].tobytes(), variable


class TestSecrecy:
    """What each client process received over a whole run, byte for byte."""

    @pytest.mark.parametrize("site", SITES)
    def test_no_site_receives_the_name_of_a_class_it_does_not_hold(self, runs, site):
        received = (runs.first.folder / "received" / site).read_bytes().lower()
        own = SITES[site]["classes"]
        for name in own:  # the search must be able to find a name at all
            assert any(form in received for form in forms(name)), name
        for name in set(UNION) - set(own):
            assert not any(form in received for form in forms(name)), name

    @pytest.mark.parametrize("site", SITES)
    def test_no_file_of_a_site_names_a_class_it_does_not_hold(self, runs, site):
        for path in files(runs.first.workspace / site):
            content = path.read_bytes().lower()
            for name in set(UNION) - set(SITES[site]["classes"]):
                assert not any(form in content for form in forms(name)), (path, name)

    @pytest.mark.parametrize("site", SITES)
    def test_a_site_receives_nothing_of_the_servers_configuration(self, runs, site):
        names = {path.name for path in files(runs.first.workspace / site)}
        assert "config_fed_client.conf" in names
        assert "config_fed_server.conf" not in names


class TestFaults:
    def test_the_run_goes_on_to_its_last_round(self, runs):
        rounds = [event["round"] for event in runs.faulty.record if event["event"] == "round"]
        assert rounds == [0, 1, 2, 3]

    def test_bad_results_are_on_record_with_site_round_and_reason(self, runs):
        refused = {
            (event["site"], event["round"]): event["reason"]
            for event in runs.faulty.record
            if event["event"] == "refused"
        }
        failed = {("west", 1), ("west", 2), ("west", 3)}
        assert set(refused) == {("south", 2), ("north", 3), *failed}
        assert all("(TASK_RESULT_FILTER_ERROR)" in refused[of] for of in failed)
        assert "'dense/kernel' has" in refused["south", 2]
        assert "undeclared ['Support Devices']" in refused["north", 3]

    def test_class_whose_holder_is_absent_keeps_its_column_bit_for_bit(self, runs):
        sent = load(runs.faulty.folder / "results" / "west-0.npz").variables
        last = runs.faulty.last
        for part in ("kernel", "bias"):
            name = f"head/Support Devices/{part}"
            assert last.variables[name].tobytes() == sent[name].tobytes()
        assert last.manifest["classes"]["Support Devices"]["last_round"] == 0

    def test_the_others_went_on_teaching(self, runs):
        assert runs.faulty.last.manifest["classes"]["Fracture"]["last_round"] == 3

    def test_column_of_the_only_contributor_of_a_round_passes_bit_for_bit(self, runs):
        sent = load(runs.faulty.folder / "results" / "south-3.npz").variables
        for name, value in sent.items():
            assert runs.faulty.last.variables[name].tobytes() == value.tobytes(), name
