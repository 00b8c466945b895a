import time
from types import SimpleNamespace
from unittest.mock import Mock

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
        self.sites, self.away = list(sites), set()

    def send_aux_request(self, targets, topic, request, timeout, fl_ctx, optional):
        assert topic == ReservedTopic.JOB_HEART_BEAT and optional
        answers = {site: make_reply(ReturnCode.OK) for site in targets}
        return {**answers, **{site: make_reply(ReturnCode.TIMEOUT) for site in self.away}}


@pytest.fixture
def watched(monkeypatch):
    """Two sites, and a function that polls them every 15 seconds and returns those gone."""
    now = SimpleNamespace(seconds=0.0, monotonic=lambda: now.seconds)
    monkeypatch.setattr(heartbeat, "time", now)
    network, watch = Network("north", "south"), SiteWatch(silence=60)
    fl_ctx = context(engine=network)

    def poll():
        now.seconds += 15
        watch.poll_sites(fl_ctx)
        return fl_ctx.get_prop(GONE, {})

    poll.watch = watch
    return network, poll


def test_a_silent_site_is_gone_until_it_comes_back_and_the_log_says_so_once(watched, caplog):
    network, poll = watched
    poll()
    network.away = {"south"}
    for _ in range(4):
        assert poll() == {}
    ((site, why),) = poll().items()
    silent = "no heartbeat for 60 s; a restarted site cannot rejoin"
    assert site == "south" and why.startswith(silent)
    assert poll() == {site: why}
    assert caplog.text.count("no heartbeat from south for 60 s") == 1
    network.away = set()
    assert poll() == poll() == {}
    assert caplog.text.count("all sites reply to heartbeats again") == 1


def test_one_answer_in_time_is_enough_and_a_site_without_any_is_only_starting(watched):
    network, poll = watched
    for away in ([], ["north"], ["north"], ["north"]) * 3:
        network.away = {"south", *away}
        assert poll() == {}


def test_a_site_that_dies_with_its_first_task_before_any_answer_is_gone_too(watched):
    network, poll = watched
    network.away = {"south"}
    given = context("south", engine=network)
    poll.watch.handle_event(EventType.AFTER_TASK_DATA_FILTER, given)
    assert [list(poll()) for _ in range(5)] == [[], [], [], [], ["south"]]


@pytest.mark.parametrize(("job", "end", "watched"), [
    ("a-job", EventType.ABOUT_TO_END_RUN, True), ("a-job", EventType.END_RUN, True),
    ("simulate_job", EventType.END_RUN, False),
])  # fmt: skip
def test_looks_all_the_run_but_in_the_simulator(job, end, watched, monkeypatch, caplog):
    poll = Mock(side_effect=RuntimeError("no network"))
    monkeypatch.setattr(SiteWatch, "poll_sites", poll)
    for silence in (0, -1, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="silence must be a number of seconds above 0"):
            SiteWatch(silence=silence)
    network, watch = Network("north"), SiteWatch(silence=0.08)
    fl_ctx = context(engine=network)
    fl_ctx.set_prop(ReservedKey.RUN_NUM, job, private=False, sticky=False)
    watch.handle_event(EventType.START_RUN, fl_ctx)
    deadline = time.monotonic() + (60 if watched else 0.2)
    while poll.call_count < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    watch.handle_event(end, fl_ctx)
    seen = poll.call_count
    time.sleep(0.1)
    assert (seen > 1) == watched and poll.call_count <= seen + 1
    assert ("the heartbeat request failed" in caplog.text) == watched
