from hypothesis import given
from hypothesis import strategies as st

from surgical_aggregation.server.workflows.task_status import Collection

SITES = ("east", "north", "south", "west")


def collection(needed=2, wait=10.0):
    return Collection("train", 3, SITES, needed, wait)


def test_the_wait_begins_when_as_many_as_needed_were_accepted_and_no_more_prolong_it():
    it = collection()
    it.accept("north", now=100.0)
    assert it.verdict(now=1000.0) == "open"
    it.accept("south", now=1000.0)
    it.accept("west", now=1004.0)
    assert it.verdict(now=1009.9) == "open"
    assert it.verdict(now=1010.0) == "enough"


def test_nobody_is_waited_for_who_has_answered_or_is_gone():
    it = collection()
    it.accept("north", now=0.0)
    it.accept("south", now=0.0)
    it.failed.add("west")
    assert it.verdict(now=0.0) == "open"
    assert it.verdict(now=0.0, gone=["east"]) == "enough"


events = st.lists(st.tuples(st.sampled_from(SITES), st.sampled_from(["accept", "fail", "go"])))


@given(events, st.integers(1, 5))
def test_the_verdict_is_that_of_counting(events, needed):
    it, fate = collection(needed, wait=0.0), {}
    for site, what in events:
        if site not in fate:
            fate[site] = what
            if what == "accept":
                it.accept(site, now=0.0)
            elif what == "fail":
                it.failed.add(site)
    gone = [site for site, what in fate.items() if what == "go"]
    accepted = [*fate.values()].count("accept")
    reachable = accepted + len(SITES) - len(fate)
    expected = "enough" if accepted >= needed else "open" if reachable >= needed else "too few"
    assert it.verdict(now=0.0, gone=gone) == expected
