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


def test_a_continued_run_ends_with_the_model_of_an_undisturbed_run_bit_for_bit(continued):
    for model in ("last", "best"):
        rest, whole = getattr(continued.rest, model), getattr(continued.whole, model)
        assert same(rest, whole)
        assert rest.moments and rest.moments.keys() == whole.moments.keys()
        for name, value in rest.moments.items():
            assert value.tobytes() == whole.moments[name].tobytes()
        assert rest.manifest["best"] == whole.manifest["best"]
        assert rest.manifest["round"] == whole.manifest["round"]


def test_rounds_history_and_best_model_go_on(continued):
    rest, manifest = continued.rest, continued.rest.last.manifest
    assert manifest["history"] == [{"job": "simulate_job", "rounds": [0, 2]}]
    assert manifest["classes"] == continued.whole.last.manifest["classes"]
    assert rest.events("round")[0]["round"] == 2
    assert rest.events("best")[0] == continued.half.events("best")[-1]
    assert rest.events("best_dropped") == []


def test_a_class_whose_site_is_gone_keeps_its_column_and_one_of_a_new_site_is_added(continued):
    before, grown = continued.half.last.variables, continued.grown
    for name in ("head/Fracture/kernel", "head/Fracture/bias"):
        assert grown.last.variables[name].tobytes() == before[name].tobytes()
    classes = grown.last.manifest["classes"]
    assert classes["Fracture"]["last_round"] == 1
    assert classes["Support Devices"] == {"last_round": 3, "sites": ["west"]}
    assert classes["Edema"]["sites"] == ["north", "south", "west"]


def test_the_earlier_best_model_lacks_the_new_class(continued):
    (dropped,) = continued.grown.events("best_dropped")
    assert dropped["reason"] == "it has no columns for all classes of ['west']"
    best = continued.grown.best
    assert best.manifest["best"]["round"] >= 3
    union = ("Edema", "Fracture", "Nodule/Mass", "Support Devices")
    assert wire.classes_of(best.variables) == union


def test_a_new_site_is_sent_the_columns_that_there_are(continued):
    lines = (continued.grown.server / "metrics/round_metrics.jsonl").read_text()
    warmed = {
        site["name"]: metric["value"]
        for site in json.loads(lines.splitlines()[0])["sites"]
        for metric in site["metrics"]
        if metric["name"] == "warmed_up"
    }
    assert warmed == {"north": 0, "west": 1}  # Support Devices alone


def test_stopping_is_on_record_and_counts_the_rounds_before_the_continuation(continued):
    (stopped,) = continued.whole.events("stopped")
    assert stopped["round"] - stopped["best_round"] == 2 and stopped["round"] < 7
    assert continued.rest.events("stopped") == [stopped]


def test_a_stopped_run_ends_well_its_final_model_validated_and_the_best_one_tested(continued):
    whole = continued.whole
    (stopped,) = whole.events("stopped")
    assert whole.events("round")[-1]["round"] == stopped["round"]
    assert whole.last.manifest["round"] == stopped["round"] + 1
    assert all({"SRV_last", "SRV_best"} <= set(whole.measured()[site]) for site in TWO)
    assert whole.record[-1]["event"] == "ended"
    assert load(checkpoint_folder(whole.workspace) / "last.npz").manifest["best"]
