import time
from types import SimpleNamespace

import pytest
from nvflare.apis.event_type import EventType
from nvflare.apis.fl_constant import ReservedKey, ReservedTopic, ReturnCode
from nvflare.apis.shareable import make_reply

from flare import Engine, context
from surgical_aggregation.server.workflows import heartbeat
from surgical_aggregation.server.workflows.heartbeat import SiteWatch
from surgical_aggregation.wire.headers import GONE


class Network(Engine):
    """Sites that answer, but those that are away."""

    def __init__(self, *sites):
        super().__init__()
        self.sites = list(sites)
        self.away = set()

    def send_aux_request(self, targets, topic, request, timeout, fl_ctx, optional):
        assert topic == ReservedTopic.JOB_HEART_BEAT and optional
        answers = {site: make_reply(ReturnCode.OK) for site in targets}
        return {**answers, **{site: make_reply(ReturnCode.TIMEOUT) for site in self.away}}


@pytest.fixture
def watched(monkeypatch):
    """Two sites, and a look at them every 15 seconds: who is gone."""
    now = SimpleNamespace(seconds=0.0, monotonic=lambda: now.seconds)
    monkeypatch.setattr(heartbeat, "time", now)
    network, watch = Network("north", "south"), SiteWatch(silence=60)
    fl_ctx = context(engine=network)

    def look():
        now.seconds += 15
        watch.poll_sites(fl_ctx)
        return fl_ctx.get_prop(GONE, {})

    look.watch = watch
    return network, look


def test_a_silent_site_is_gone_until_it_comes_back_and_the_log_says_so_once(watched, caplog):
    network, look = watched
    look()
    network.away = {"south"}
    for _ in range(4):
        assert look() == {}
    ((site, why),) = look().items()
    assert site == "south" and why.startswith("no sign of life for 60 s; a site that was started")
    assert look() == {site: why}
    assert caplog.text.count("no sign of life of south for 60 s") == 1
    network.away = set()
    assert look() == look() == {}
    assert caplog.text.count("all sites give signs of life again") == 1


def test_one_answer_in_time_is_enough_and_a_site_without_any_is_only_starting(watched):
    network, look = watched
    for away in ([], ["north"], ["north"], ["north"]) * 3:
        network.away = {"south", *away}
        assert look() == {}


def test_a_site_that_dies_with_its_first_task_before_any_answer_is_gone_too(watched):
    network, look = watched
    network.away = {"south"}
    given = context("south", engine=network)
    look.watch.handle_event(EventType.AFTER_TASK_DATA_FILTER, given)
    assert [list(look()) for _ in range(5)] == [[], [], [], [], ["south"]]


@pytest.mark.parametrize(("job", "end", "watched"), [
    ("a-job", EventType.ABOUT_TO_END_RUN, True),
    ("a-job", EventType.END_RUN, True),
    ("simulate_job", EventType.END_RUN, False),
])  # fmt: skip
def test_looks_from_the_start_of_a_run_to_its_end_whatever_fails_but_not_in_the_simulator(
    job, end, watched, monkeypatch, caplog
):
    looks = []

    def look(self, fl_ctx):
        looks.append(fl_ctx)
        raise RuntimeError("no network")

    monkeypatch.setattr(SiteWatch, "look", look)
    for silence in (0, -1, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="silence must be a number of seconds above 0"):
            SiteWatch(silence=silence)
    network, watch = Network("north"), SiteWatch(silence=0.08)
    fl_ctx = context(engine=network)
    fl_ctx.set_prop(ReservedKey.RUN_NUM, job, private=False, sticky=False)
    watch.handle_event(EventType.START_RUN, fl_ctx)
    time.sleep(0.2)
    watch.handle_event(end, fl_ctx)
    seen = len(looks)
    time.sleep(0.1)
    assert (seen > 1) == watched and len(looks) <= seen + 1
    assert ("could not look after the sites" in caplog.text) == watched
