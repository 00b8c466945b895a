"""A run that is continued, and one that stops early, in FLARE's simulator."""

from types import SimpleNamespace

import pytest

from cxr_study.runs.finished_run import checkpoint_folder
from simulated import TWO, run, same
from surgical_aggregation.checkpoints.checkpoint import load
from surgical_aggregation.wire import variables as wire

OTHERS = {"north": TWO["north"], "west": {"classes": ["Edema", "Support Devices"], "images": 16}}
# So fast a learner gets worse soon.
SETTINGS = {"learning_rate": 0.3, "patience": 2, "server_optimizer": "fedavgm"}
FIRST = 4
"""Rounds of the first part: after the best model's, and before training is stopped."""


@pytest.fixture(scope="module")
def continued(tmp_path_factory, initial_body):
    """One undisturbed run, and one in two parts; and its first part continued with other sites."""
    folder = tmp_path_factory.mktemp("continued")
    whole = run(folder / "whole", TWO, initial_body, num_rounds=8, **SETTINGS)
    half = run(folder / "half", TWO, initial_body, num_rounds=FIRST, **SETTINGS)
    start = checkpoint_folder(half.workspace) / "last.npz"
    states = {site: checkpoint_folder(half.workspace, site) for site in TWO}
    rest = run(folder / "rest", TWO, start, states=states, num_rounds=8 - FIRST, **SETTINGS)
    grown = run(folder / "grown", OTHERS, start, num_rounds=2, **SETTINGS)
    return SimpleNamespace(whole=whole, half=half, rest=rest, grown=grown)


def test_a_continued_run_ends_with_the_model_of_an_undisturbed_run_bit_for_bit(continued):
    for model in ("last", "best"):
        rest, whole = getattr(continued.rest, model), getattr(continued.whole, model)
        assert same(rest, whole)
        assert rest.moments and rest.moments.keys() == whole.moments.keys()
        for name, value in rest.moments.items():
            assert value.tobytes() == whole.moments[name].tobytes()
        for fact in ("best", "round", "classes"):
            assert rest.manifest[fact] == whole.manifest[fact]


def test_rounds_history_best_model_and_patience_go_on(continued):
    rest = continued.rest
    assert rest.last.manifest["history"] == [{"job": "simulate_job", "rounds": [0, FIRST]}]
    assert rest.events("round")[0]["round"] == FIRST
    assert rest.events("best")[0] == continued.half.events("best")[-1]
    assert rest.events("best_dropped") == []
    assert rest.events("stopped") == continued.whole.events("stopped")


def test_other_sites_keep_the_columns_and_get_a_best_model_of_their_own(continued):
    before, grown = continued.half.last.variables, continued.grown
    for name in ("head/Fracture/kernel", "head/Fracture/bias"):
        assert grown.last.variables[name].tobytes() == before[name].tobytes()
    classes = grown.last.manifest["classes"]
    assert classes["Fracture"]["last_round"] == FIRST - 1
    assert classes["Support Devices"] == {
        "last_round": FIRST + 1, "sites": ["west"], "rounds": [[FIRST, FIRST + 1, ["west"]]],
    }  # fmt: skip
    assert classes["Edema"]["sites"] == ["north", "south", "west"]
    (dropped,) = grown.events("best_dropped")
    assert dropped["reason"] == "it has no columns for all classes of ['west']"
    assert grown.best.manifest["best"]["round"] >= FIRST + 1
    union = ("Edema", "Fracture", "Nodule/Mass", "Support Devices")
    assert wire.classes_of(grown.best.variables) == union
    first, *_ = grown.round_metrics().values()
    warmed = {site: metrics["warmed_up"] for site, metrics in first.items()}
    assert warmed == {"north": 0, "west": 1}  # Support Devices alone


def test_a_stopped_run_ends_well_its_final_model_validated_and_the_best_one_tested(continued):
    whole = continued.whole
    (stopped,) = whole.events("stopped")
    assert stopped["round"] - stopped["best_round"] == 2 and stopped["round"] < 7
    assert whole.events("round")[-1]["round"] == stopped["round"]
    assert whole.last.manifest["round"] == stopped["round"] + 1
    assert all({"SRV_last", "SRV_best"} <= set(whole.measured()[site]) for site in TWO)
    assert whole.record[-1]["event"] == "ended"
    assert load(checkpoint_folder(whole.workspace) / "last.npz").manifest["best"]
