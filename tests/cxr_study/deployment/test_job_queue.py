import inspect
import re
from datetime import datetime

import pytest
from nvflare.app_common.job_schedulers.job_scheduler import DefaultJobScheduler

from cxr_study.deployment import job_queue

OK = "not enough sites have enough resources (ok sites 1 < min sites 2)"
FEW = "connected sites (0) < min_sites (2)"


def meta(*reasons):
    return {
        "deploy_map": {"app_server": ["server"], "app_client": ["a", "b"]},
        "schedule_history": [f"2026-01-01 12:00:00: {reason}" for reason in reasons] or None,
        "last_schedule_time": datetime(2026, 1, 1, 12).timestamp(),
    }


@pytest.mark.parametrize(("reasons", "connected", "said"), [
    ([], "", "^FLARE has not tried to start it: other jobs run, or no.*; not connected: a, b$"),
    ([OK], "ab", "^only 1 of the 2 .*FLARE: not .*; try 1 .* 12:00:10, .* up at 12:40:30$"),
    ([OK] * 5 + [FEW], "a", "^only 0 of .*; not connected: b; try 6 of 10, .* 12:05:20, and"),
    ([FEW] * 7, "", "the next at 12:10:00, and FLARE gives up at 12:30:00$"),
    (["no site b"], "a", "^FLARE could not start it .FLARE: no site b.; not"),
])  # fmt: skip
def test_it_is_said_why_a_job_waits_and_until_when(reasons, connected, said):
    assert re.search(said, job_queue.told(meta(*reasons), connected))


def test_flares_scheduler_tries_as_often_and_waits_as_long_as_it_is_said_to():
    known = inspect.signature(DefaultJobScheduler).parameters
    names = ("max_schedule_count", "min_schedule_interval", "max_schedule_interval")
    ours = [job_queue.TRIES, job_queue.SHORTEST, job_queue.LONGEST]
    assert [known[name].default for name in names] == ours
