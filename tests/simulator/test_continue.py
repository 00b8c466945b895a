"""A run that is continued, and one that stops early, in FLARE's simulator."""

import json
from types import SimpleNamespace

import pytest

from cxr_study.runs.finished_run import checkpoint_folder
from simulated import TWO, run, same
from surgical_aggregation.checkpoints.checkpoint import load
from surgical_aggregation.wire import variables as wire

OTHERS = {
    "north": TWO["north"],
    "west": {"classes": ["Edema", "Support Devices"], "images": 16},
}
# So fast a learner gets worse soon.
SETTINGS = {"learning_rate": 0.3, "patience": 2, "server_optimizer": "fedavgm"}


@pytest.fixture(scope="module")
def continued(tmp_path_factory, initial_body):
    """One undisturbed run, and one in two parts; and its first part continued with other sites."""
    folder = tmp_path_factory.mktemp("continued")
    whole = run(folder / "whole", TWO, initial_body, num_rounds=8, **SETTINGS)
    half = run(folder / "half", TWO, initial_body, num_rounds=2, **SETTINGS)
    start = checkpoint_folder(half.workspace) / "last.npz"
    states = {site: checkpoint_folder(half.workspace, site) for site in TWO}
    rest = run(folder / "rest", TWO, start, states=states, num_rounds=6, **SETTINGS)
    grown = run(folder / "grown", OTHERS, start, num_rounds=2, **SETTINGS)
    return SimpleNamespace(whole=whole, half=half, rest=rest, grown=grown)


class TestContinuing:
    def test_ends_with_the_model_of_an_undisturbed_run_bit_for_bit(self, continued):
        for model in ("last", "best"):
            rest, whole = getattr(continued.rest, model), getattr(continued.whole, model)
            assert same(rest, whole) and rest.moments.keys() == whole.moments.keys()
            for name, value in rest.moments.items():
                assert value.tobytes() == whole.moments[name].tobytes()
            assert rest.moments
            assert rest.manifest["best"] == whole.manifest["best"]
            assert rest.manifest["round"] == whole.manifest["round"]

    def test_rounds_and_history_go_on(self, continued):
        first = continued.rest.last.manifest["history"]
        assert first == [{"job": "simulate_job", "rounds": [0, 2]}]
        assert continued.rest.events("round")[0]["round"] == 2
        assert continued.rest.last.manifest["classes"] == continued.whole.last.manifest["classes"]

    def test_the_earlier_best_model_is_on_record_from_the_start(self, continued):
        assert continued.rest.events("best")[0] == continued.half.events("best")[-1]
        assert continued.rest.events("best_dropped") == []


class TestGrowing:
    def test_a_class_whose_holder_is_gone_keeps_its_column_bit_for_bit(self, continued):
        before, after = continued.half.last.variables, continued.grown.last.variables
        for part in ("kernel", "bias"):
            name = f"head/Fracture/{part}"
            assert after[name].tobytes() == before[name].tobytes()
        assert continued.grown.last.manifest["classes"]["Fracture"]["last_round"] == 1

    def test_a_class_of_a_new_site_is_added(self, continued):
        classes = continued.grown.last.manifest["classes"]
        assert classes["Support Devices"] == {"last_round": 3, "sites": ["west"]}
        assert classes["Edema"]["sites"] == ["north", "south", "west"]
        union = ("Edema", "Fracture", "Nodule/Mass", "Support Devices")
        assert wire.classes_of(continued.grown.best.variables) == union

    def test_the_earlier_best_model_lacks_the_new_class(self, continued):
        (dropped,) = continued.grown.events("best_dropped")
        assert dropped["reason"] == "it has no columns for all classes of ['west']"
        assert continued.grown.best.manifest["best"]["round"] >= 3

    def test_a_new_site_is_sent_the_columns_that_there_are(self, continued):
        lines = (continued.grown.server / "metrics/round_metrics.jsonl").read_text()
        first = json.loads(lines.splitlines()[0])["sites"]
        warmed = {
            site["name"]: metric["value"]
            for site in first
            for metric in site["metrics"]
            if metric["name"] == "warmed_up"
        }
        assert warmed == {"north": 0, "west": 1}  # Support Devices alone


class TestStopping:
    def test_is_on_record_and_counts_the_rounds_before_the_continuation(self, continued):
        (stopped,) = continued.whole.events("stopped")
        assert stopped["round"] - stopped["best_round"] == 2 and stopped["round"] < 7
        assert continued.rest.events("stopped") == [stopped]

    def test_the_last_model_is_that_of_the_last_round(self, continued):
        (stopped,) = continued.whole.events("stopped")
        assert continued.whole.events("round")[-1]["round"] == stopped["round"]
        assert continued.whole.last.manifest["round"] == stopped["round"] + 1

    def test_the_final_model_is_validated_and_the_best_one_tested(self, continued):
        measured = continued.whole.measured()
        assert all({"SRV_last", "SRV_best"} <= set(measured[site]) for site in TWO)

    def test_the_run_ends_well(self, continued):
        assert continued.whole.record[-1]["event"] == "ended"
        assert load(checkpoint_folder(continued.whole.workspace) / "last.npz").manifest["best"]
