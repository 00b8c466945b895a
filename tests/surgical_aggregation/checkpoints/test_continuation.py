from surgical_aggregation.checkpoints.continuation import (
    continued,
    first_round,
    missing_rounds,
    start_manifest,
)


def ran(manifest, job, rounds):
    """Manifest after a job of so many rounds."""
    started = start_manifest(manifest, job)
    return {**started, "round": started["round"] + rounds}


FRESH = {"head_features": 4, "backbone": "small_densenet"}


def test_what_no_job_wrote_is_a_fresh_start_at_round_0():
    assert start_manifest(FRESH, "a") == {**FRESH, "job": "a", "round": 0}
    assert start_manifest({**FRESH, "round": 7}, "a")["round"] == 0
    assert continued(start_manifest(FRESH, "a")) is None


def test_every_job_goes_into_the_history_with_its_rounds():
    third = start_manifest(ran(ran(FRESH, "a", 3), "b", 2), "c")
    assert third["history"] == [
        {"job": "a", "rounds": [0, 3]},
        {"job": "b", "rounds": [3, 5]},
    ]
    assert (third["round"], third["job"]) == (5, "c")
    assert continued(third) == {"jobs": ["b", "a"], "round": 5}
    assert first_round(third) == 5


def test_a_jobs_rounds_are_those_of_the_model_that_is_continued():
    first = ran(FRESH, "a", 3)
    best_of_first = {**first, "round": 2}
    assert start_manifest(best_of_first, "b")["history"] == [{"job": "a", "rounds": [0, 2]}]
    without_rounds = start_manifest(first, "b")
    assert start_manifest(without_rounds, "c")["history"][-1] == {"job": "b", "rounds": [3, 3]}
    older = {**FRESH, "job": "a"}  # of an earlier version
    assert start_manifest(older, "b")["history"] == [{"job": "a", "rounds": [0, 0]}]


def test_the_best_record_is_not_the_new_jobs_yet_and_all_other_facts_are():
    manifest = {**ran(FRESH, "a", 3), "best": {"round": 1}, "classes": {"Mass": {}}}
    started = start_manifest(manifest, "b")
    assert "best" not in started and "best" in manifest
    assert started["classes"] == {"Mass": {}} and started["backbone"] == "small_densenet"


def test_missing_rounds_are_those_planned_and_not_made():
    begun = {**start_manifest(FRESH, "a"), "planned_rounds": 12}
    assert missing_rounds({**begun, "round": 5}) == 7
    assert missing_rounds(start_manifest({**begun, "round": 5}, "b")) == 7
    assert missing_rounds({**begun, "round": 12}) == 0
    assert missing_rounds(FRESH) == 0 == missing_rounds({**FRESH, "round": 3})
