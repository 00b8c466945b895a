from surgical_aggregation.checkpoints.continuation import (
    continued,
    first_round,
    missing_rounds,
    start_manifest,
)

FRESH = {"head_features": 4, "backbone": "small_densenet"}


def ran(manifest, job, rounds):
    """Manifest after a job of so many rounds."""
    started = start_manifest(manifest, job)
    return {**started, "round": started["round"] + rounds}


def test_what_no_job_wrote_is_a_fresh_start_at_round_0():
    started = start_manifest({**FRESH, "round": 7}, "a")
    assert started == {**FRESH, "job": "a", "round": 0, "contributed": {}}
    assert started == start_manifest({**FRESH, "contributed": {"north": [[0, 6]]}}, "a")
    assert continued(started) is None


def test_every_job_goes_into_the_history_with_its_rounds_and_other_facts_stay():
    of_its_time = {"best": {"round": 1}, "candidate": "average"}
    second = {**ran(ran(FRESH, "a", 3), "b", 2), **of_its_time}
    third = start_manifest(second, "c")
    history = [{"job": "a", "rounds": [0, 3]}, {"job": "b", "rounds": [3, 5]}]
    assert third == {**FRESH, "round": 5, "job": "c", "history": history, "contributed": {}}
    assert "best" in second
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


def test_missing_rounds_are_those_planned_and_not_made():
    begun = {**start_manifest(FRESH, "a"), "planned_rounds": 12, "round": 5}
    assert missing_rounds(begun) == missing_rounds(start_manifest(begun, "b")) == 7
    assert missing_rounds(FRESH) == 0 == missing_rounds({**FRESH, "round": 3})
