from hypothesis import given
from hypothesis import strategies as st

from surgical_aggregation.server.workflows.task_status import Collection

SITES = ("east", "north", "south", "west")


def test_the_others_are_waited_for_from_the_last_needed_result_on_unless_none_is_coming():
    it = Collection("train", 3, SITES, needed=2, wait=10.0)
    it.accept("north", now=100.0)
    assert it.verdict(now=1000.0) == "open"
    it.accept("south", now=1000.0)
    assert it.verdict(now=1000.0, gone=["east", "west"]) == "enough"
    it.accept("west", now=1004.0)
    assert it.verdict(now=1009.9) == "open"
    assert it.verdict(now=1010.0) == "enough"
    it.failed.add("east")
    assert it.verdict(now=1009.9) == "enough"


events = st.lists(st.tuples(st.sampled_from(SITES), st.sampled_from(["accept", "fail", "go"])))


@given(events, st.integers(1, 5))
def test_the_verdict_is_that_of_counting(events, needed):
    it, fate = Collection("train", 3, SITES, needed, wait=0.0), {}
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
