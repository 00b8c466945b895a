import tracemalloc

from surgical_aggregation.aggregation.site_result import SiteResult
from surgical_aggregation.checkpoints.manifest import Manifest, before_round, with_round

FRESH = Manifest({"head_features": 4, "backbone": "small_densenet"})


def ran(manifest, job, rounds):
    """Manifest after a job of so many rounds."""
    started = manifest.started_by(job)
    return started.with_facts(round=started.round + rounds)


def test_what_no_job_wrote_is_a_fresh_start_at_round_0():
    started = FRESH.with_facts(round=7).started_by("a")
    assert started == {**FRESH, "job": "a", "round": 0, "contributed": {}}
    assert started == FRESH.with_facts(contributed={"north": [[0, 6]]}).started_by("a")
    assert started.continued is None and "job" not in FRESH


def test_every_job_goes_into_the_history_with_its_rounds_and_other_facts_stay():
    second = ran(ran(FRESH, "a", 3), "b", 2).with_facts(best={"round": 1}, candidate="average")
    third = second.started_by("c")
    history = [{"job": "a", "rounds": [0, 3]}, {"job": "b", "rounds": [3, 5]}]
    assert third == {**FRESH, "round": 5, "job": "c", "history": history, "contributed": {}}
    assert "best" in second
    assert third.continued == {"jobs": ["b", "a"], "round": 5} and third.first_round == 5


def test_what_was_measured_of_a_model_does_not_pass_to_the_next():
    measured = FRESH.with_facts(features={"gone": 1}, validation={"round": 0}, candidate="refit")
    made = measured.started_by("b").with_round(0, {"nih": SiteResult({}, {})}, {})
    assert not {"features", "validation", "candidate"} & {*made} and made.round == 1


def test_a_jobs_rounds_are_those_of_the_model_that_is_continued():
    first = ran(FRESH, "a", 3)
    best_of_first = first.with_facts(round=2).started_by("b")
    assert best_of_first["history"] == [{"job": "a", "rounds": [0, 2]}]
    without_rounds = first.started_by("b").started_by("c")
    assert without_rounds["history"][-1] == {"job": "b", "rounds": [3, 3]}


def test_missing_rounds_are_those_planned_and_not_made():
    begun = FRESH.started_by("a").with_facts(planned_rounds=12, round=5)
    assert begun.missing_rounds == begun.started_by("b").missing_rounds == 7
    assert FRESH.missing_rounds == 0 == FRESH.with_facts(round=3).missing_rounds


def test_rounds_are_joined_while_the_same_sites_train_a_class_and_cut_before_a_round():
    trained = {}
    for round_, sites in enumerate(["ba", "ab", "a", "", "a"]):
        if sites:
            trained = with_round(trained, round_, list(sites))
    assert trained["rounds"] == [[0, 1, ["a", "b"]], [2, 2, ["a"]], [4, 4, ["a"]]]
    assert (trained["sites"], trained["last_round"]) == (["a", "b"], 4)
    assert before_round(trained, 2)["rounds"] == [[0, 1, ["a", "b"]]]
    assert before_round(trained, 1)["rounds"] == [[0, 0, ["a", "b"]]]
    assert before_round(trained, 4)["last_round"] == 2 and before_round(trained, 0) == {}


def test_who_has_no_label_trained_nothing_and_who_taught_a_class_lacks_nothing_later():
    first = with_round({}, 0, ["a", "b", "c"], {"b": "labelled", "c": "positive"})
    assert first["rounds"] == [[0, 0, ["a", "c"]]] and first["sites"] == ["a", "c"]
    assert first["lacking"] == {"b": "labelled", "c": "positive"}
    later = with_round(first, 1, ["a", "b", "c"], {"a": "positive", "c": "negative"})
    assert later["lacking"] == {"c": "negative"} and later["sites"] == ["a", "b", "c"]
    none = with_round({}, 3, ["a"], {"a": "labelled"})
    assert none == {"sites": [], "last_round": None, "rounds": [], "lacking": {"a": "labelled"}}
    assert Manifest({"classes": {"Edema": none}, "head_features": 2})


def test_a_range_of_rounds_that_a_file_names_is_not_counted_out():
    most = 1_000_000
    sent = SiteResult({}, {"Mass": None}, samples=1)
    tracemalloc.start()
    made = FRESH.with_facts(contributed={"north": [[0, most]]})
    made = made.with_round(most + 1, {"north": sent}, {})
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert made["contributed"] == {"north": ((0, most + 1),)}
    assert peak < 1e6
