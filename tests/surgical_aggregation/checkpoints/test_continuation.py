from surgical_aggregation.checkpoints.continuation import (
    continued,
    first_round,
    missing_rounds,
    taken_over,
)


def ran(manifest, job, rounds):
    """Manifest after a job of so many rounds."""
    started = taken_over(manifest, job)
    return {**started, "round": started["round"] + rounds}


FRESH = {"head_features": 4, "backbone": "small_densenet"}


def test_a_plain_body_is_a_fresh_start_at_round_0():
    assert taken_over(FRESH, "a") == {**FRESH, "job": "a", "round": 0}
    assert continued(taken_over(FRESH, "a")) is None


def test_a_round_that_no_job_made_is_no_round_to_go_on_from():
    assert taken_over({**FRESH, "round": 7}, "a")["round"] == 0


def test_every_job_goes_into_the_history_with_its_rounds():
    third = taken_over(ran(ran(FRESH, "a", 3), "b", 2), "c")
    assert third["history"] == [
        {"job": "a", "rounds": [0, 3]},
        {"job": "b", "rounds": [3, 5]},
    ]
    assert (third["round"], third["job"]) == (5, "c")
    assert continued(third) == {"jobs": ["b", "a"], "round": 5}
    assert first_round(third) == 5


def test_a_run_that_goes_on_from_an_earlier_model_forgets_the_rounds_after_it():
    best_of_first = {**ran(FRESH, "a", 3), "round": 2}
    assert taken_over(best_of_first, "b")["history"] == [{"job": "a", "rounds": [0, 2]}]


def test_a_job_that_made_no_round_can_be_continued():
    second = taken_over(ran(FRESH, "a", 3), "b")
    assert taken_over(second, "c")["history"][-1] == {"job": "b", "rounds": [3, 3]}


def test_the_best_record_is_not_the_new_jobs_yet_and_all_other_facts_are():
    manifest = {**ran(FRESH, "a", 3), "best": {"round": 1}, "classes": {"Mass": {}}}
    started = taken_over(manifest, "b")
    assert "best" not in started and "best" in manifest
    assert started["classes"] == {"Mass": {}} and started["backbone"] == "small_densenet"


def test_a_best_model_of_an_earlier_version_without_a_round_counts_from_0():
    assert taken_over({**FRESH, "job": "a"}, "b")["history"] == [{"job": "a", "rounds": [0, 0]}]


def test_a_run_lacks_what_it_was_to_make_and_has_not():
    begun = {**taken_over(FRESH, "a"), "planned_rounds": 12}
    assert missing_rounds({**begun, "round": 5}) == 7
    assert missing_rounds(taken_over({**begun, "round": 5}, "b")) == 7
    assert missing_rounds({**begun, "round": 12}) == 0


def test_a_model_of_which_nothing_was_planned_lacks_nothing():
    assert missing_rounds(FRESH) == 0 == missing_rounds({**FRESH, "round": 3})
