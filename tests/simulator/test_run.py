"""The surgical job in FLARE's simulator: what it makes, what it repeats, what it tells whom."""

import json

import numpy as np
import pytest

from surgical_aggregation import wire
from surgical_aggregation.checkpoint import load
from tiny_run import SITES

pytestmark = [pytest.mark.simulator, pytest.mark.keras]

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


class TestReproducibility:
    def test_same_seed_gives_bit_equal_models(self, runs):
        for name in ("best", "last"):
            first, second = getattr(runs.first, name), getattr(runs.second, name)
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


def forms(name):
    """Spellings of a name that a serialiser might use; ASCII letters in lower case."""
    escaped = json.dumps(name)[1:-1]
    spelt = {name.encode(), name.encode("utf-16-le"), name.encode("latin-1"), escaped.encode()}
    return {form.lower() for form in spelt}


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
        assert set(refused) == {("south", 2), ("north", 3)}
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
