"""The surgical job in FLARE's simulator: its models, its curves, and how it survives faults."""

import json

import numpy as np
import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from simulated import SITES, UNION, same
from surgical_aggregation.wire import variables as wire


def rounds(run):
    """Entries of FLARE's own metrics artifact."""
    lines = (run.server / "metrics/round_metrics.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


class TestResult:
    def test_the_model_has_every_class_of_every_site_and_says_who_trained_it(self, runs):
        assert list(wire.classes_of(runs.first.best.variables)) == UNION
        assert list(wire.classes_of(runs.first.last.variables)) == UNION
        classes = runs.first.last.manifest["classes"]
        assert {name: facts["sites"] for name, facts in classes.items()} == {
            name: [site for site in SITES if name in SITES[site]["classes"]] for name in UNION
        }

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
    def test_every_round_of_the_sites_classes_has_the_values_that_the_site_measured(
        self, runs, site
    ):
        found = curves(runs, site)
        for metric in ("bce", "auroc"):
            tags = {f"{metric}/{name}" for name in SITES[site]["classes"]} | {metric}
            assert {tag for tag in found if tag.split("/")[0] == metric} == tags
            assert all(list(found[tag]) == [0, 1, 2, 3] for tag in tags)  # 3: the final model
        assert list(found["train_loss"]) == [0, 1, 2]
        assert [entry["round"] for entry in rounds(runs.first)] == [0, 1, 2]
        for entry in rounds(runs.first):
            (measured,) = [s["metrics"] for s in entry["sites"] if s["name"] == site]
            values = {metric["name"]: metric["value"] for metric in measured}
            for tag in {*found} & {*values}:
                assert found[tag][entry["round"]] == np.float32(values[tag]), tag
        final = runs.first.measured()[site]
        assert found["bce"][3] == np.float32(final["SRV_last"]["bce"])
        best = runs.first.best.manifest["best"]["round"]
        for name, value in final["SRV_best"].items():
            assert found[f"test/{name}"] == {best: np.float32(value)}

    def test_nothing_of_it_is_at_the_sites(self, runs):
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
        }
        refused = {(e["site"], e["round"]): e["reason"] for e in runs.faulty.events("refused")}
        assert set(refused) == set(reasons)
        assert all(reason in refused[of] for of, reason in reasons.items())
        assert [event["round"] for event in runs.faulty.events("round")] == [0, 1, 2, 3]

    def test_columns_are_bit_for_bit_those_of_the_last_and_only_site_that_sent_them(self, runs):
        last, classes = runs.faulty.last.variables, runs.faulty.last.manifest["classes"]
        sent = runs.faulty.trained("west", 0).variables
        for name in ("head/Support Devices/kernel", "head/Support Devices/bias"):
            assert last[name].tobytes() == sent[name].tobytes()
        assert classes["Support Devices"]["last_round"] == 0
        for name, value in runs.faulty.trained("south", 3).variables.items():
            assert last[name].tobytes() == value.tobytes(), name
        assert classes["Fracture"]["last_round"] == 3
