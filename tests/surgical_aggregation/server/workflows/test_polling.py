from types import SimpleNamespace

import pytest
from nvflare.apis.event_type import EventType
from nvflare.apis.fl_constant import FLContextKey
from nvflare.private.defs import TaskConstant
from nvflare.private.fed.server.server_runner import ServerRunner

from flare import Engine, context
from surgical_aggregation.server.workflows.polling import Polling


def interval(sites, own, event=EventType.START_RUN, **settings):
    """Seconds that FLARE's runner tells a waiting site to wait, of `own` in its configuration."""
    runner = ServerRunner.__new__(ServerRunner)
    runner.config = SimpleNamespace(task_request_interval=own)
    engine = Engine()
    engine.sites = [f"site-{n}" for n in range(sites)]
    fl_ctx = context(engine=engine, props={FLContextKey.RUNNER: runner})
    Polling(**settings).handle_event(event, fl_ctx)
    _, _, answer = runner._task_try_again()
    return answer.get_header(TaskConstant.WAIT_TIME), engine


FEWER, EARLIER = {"requests_per_second": 2}, {"event": EventType.ABOUT_TO_START_RUN}


@pytest.mark.parametrize(("sites", "own", "how", "seconds"), [
    (1, 0.1, {}, 0.1), (10, 0.1, {}, 0.1), (11, 0.1, {}, 0.11), (200, 0.1, {}, 2.0),
    (4, 0.1, FEWER, 2.0), (4, 5.0, FEWER, 5.0), (200, 0.1, EARLIER, 0.1),
])  # fmt: skip
def test_sites_ask_so_often_and_none_sooner_than_flares_interval(sites, own, how, seconds):
    assert interval(sites, own, **how)[0] == seconds


def test_no_requests_at_all_are_refused_before_the_run():
    seconds, engine = interval(4, own=0.1, requests_per_second=0)
    assert seconds == 0.1
    assert EventType.FATAL_SYSTEM_ERROR in engine.events
