import inspect
import json
import re
from datetime import datetime
from types import SimpleNamespace

import pytest
from nvflare.app_common.job_schedulers.job_scheduler import DefaultJobScheduler
from nvflare.private.fed.server.job_runner import JobRunner

from cxr_deployment import job_watch
from cxr_deployment.job_watch import End, Progress, explain, watch

DONE = "FINISHED:COMPLETED"
ROUND = {"rounds": 1, "best": None, "stopped": False}


def session(statuses, stats=(), started=0.0):
    """A session whose server answers one look at the job after the other; `asked`: how often."""
    left, queued, asked = iter(statuses), iter(stats), []

    def meta(job_id):
        if (status := next(left)) == "JUST DISPATCHED":
            return {"status": "DISPATCHED"}
        return {"status": status, "last_schedule_time": 100.0 * (status != "SUBMITTED") or None}

    def answers(job_id):
        asked.append(job_id)
        return next(queued, {})

    return SimpleNamespace(meta=meta, stats=answers, server_started=lambda: started, asked=asked)


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(job_watch, "POLL", 0.0)


@pytest.mark.parametrize(("statuses", "started", "completed", "lost"), [
    (["SUBMITTED", "DISPATCHED", "RUNNING", DONE], 0.0, True, False),
    (["FINISHED:ABORTED"], 0.0, False, False),
    (["RUNNING"], 200.0, False, True),  # scheduled before the server started
    (["DISPATCHED"], 200.0, False, True),
    (["SUBMITTED", DONE], 200.0, True, False),
    (["JUST DISPATCHED", DONE], 200.0, True, False),  # the server has not noted it yet
])  # fmt: skip
def test_a_job_ends_or_is_lost_where_the_server_was_restarted(statuses, started, completed, lost):
    end = watch(session(statuses, started=started), "job", lambda now: None, print)
    assert (end.completed, end.lost) == (completed, lost)


def test_a_reason_that_comes_after_the_status_is_waited_for():
    without = {"status": "FINISHED:FAILED_TO_RUN"}
    looks = iter([without, without, {**without, "job_deploy_detail": ["nih: no such class"]}])
    asking = SimpleNamespace(meta=lambda job_id: next(looks))
    end = watch(asking, "job", lambda now: None, print)
    assert job_watch.start_failure(end.meta) == "nih: no such class"


def test_what_a_site_replies_to_flare_cannot_hide_or_write_over_other_lines():
    told = ["server: OK", "a: no\n\x1b[2Kb: OK"]
    meta = {"status": "FINISHED:FAILED_TO_RUN", "job_deploy_detail": told}
    assert job_watch.start_failure(meta) == r"a: no\n\x1b[2Kb: OK"
    history = {"schedule_history": ["t: few. Details: a: \x1b[2K"], "last_schedule_time": 1.0}
    assert r"a: \x1b[2K" in job_watch.describe_wait({**history, "deploy_map": {}}, ())


def test_flare_stores_the_status_of_a_job_that_could_not_start_before_its_reason():
    source = inspect.getsource(JobRunner.run)
    _, after = source.split("set_status(ready_job.job_id, RunStatus.FAILED_TO_RUN, fl_ctx)")
    assert "JobMetaKey.JOB_DEPLOY_DETAIL.value: deploy_detail" in after


RECORD = {"RunRecord": ROUND}
SECOND, FIFTH = ({"RunRecord": {**ROUND, "rounds": made}} for made in (2, 5))
NEWER = {"RunRecord": {**ROUND, "of a newer version": 1}}


@pytest.mark.parametrize(("looks", "stats", "quiet", "rounds", "asked"), [
    (3, [RECORD, NEWER, SECOND], 0, [1, 2], 3),  # shown when it changes
    (7, [RECORD, {}, {}, SECOND, {}, {}, FIFTH], 0, [1, 2, 5], 7),  # asked again
    (20, [*[{}] * 5, RECORD], 0, [1], 6 + job_watch._UNANSWERED),  # on its way out
    (3, [RECORD], 60, [], 0),  # it has just started
])  # fmt: skip
def test_a_job_is_asked_while_it_may_answer(monkeypatch, looks, stats, quiet, rounds, asked):
    monkeypatch.setattr(job_watch, "_QUIET", quiet)
    asking, shown = session(["RUNNING"] * looks + [DONE], stats), []
    seen = watch(asking, "job", shown.append, print).seen
    assert [now.rounds for now in shown] == rounds and len(asking.asked) == asked
    assert seen == Progress(*rounds[-1:])


def test_a_job_that_no_longer_answers_is_asked_again_after_a_while(monkeypatch):
    monkeypatch.setattr(job_watch, "_QUIET", 0.0)
    monkeypatch.setattr(job_watch, "_HEARTBEAT", 0.0)
    stats, shown = [RECORD, *[{}] * job_watch._UNANSWERED, FIFTH], []
    watch(session(["RUNNING"] * len(stats) + [DONE], stats), "job", shown.append, print)
    assert [now.rounds for now in shown] == [1, 5]


def test_a_job_is_looked_at_less_often_while_it_does_not_change(monkeypatch):
    monkeypatch.setattr(job_watch, "POLL", 1.0)
    monkeypatch.setattr(job_watch, "_QUIET", 0.0)
    now, slept = [0.0], []

    def sleep(seconds):
        slept.append(seconds)
        now[0] += seconds

    monkeypatch.setattr(job_watch.time, "sleep", sleep)
    monkeypatch.setattr(job_watch.time, "monotonic", lambda: now[0])
    answers = [RECORD] * 30 + [SECOND]
    watch(session(["RUNNING"] * 31 + [DONE], answers), "job", lambda now: None, print)
    assert slept[0] == 1.0 == slept[-1] and slept[-2] == 10.0


BEST = {"event": "best", "round": 1, "value": 0.5}
LATER = [{"event": "best_of_a_newer_version", "facts": 1}, {"event": "silent", "site": "a"}]


@pytest.mark.parametrize(("events", "expected"), [
    ([BEST, {"event": "round", "round": 0}, {"event": "stopped"}], Progress(1, BEST, True)),
    ([BEST, {"event": "best_dropped"}, {"event": "round"}], Progress(1, None, False)),
    ([BEST, *LATER], Progress(0, BEST, False)),
    ([], Progress()),
])  # fmt: skip
def test_a_record_on_this_machine_is_read_and_the_server_is_not_queried(tmp_path, events, expected):
    (tmp_path / "job").mkdir()
    lines = "".join(json.dumps(event) + "\n" for event in events)
    (tmp_path / "job/run_record.jsonl").write_text(lines)
    asking, shown = session(["RUNNING", DONE]), []
    assert watch(asking, "job", shown.append, print, server=tmp_path).seen == expected
    assert shown == [expected] * bool(events) and not asking.asked


@pytest.mark.parametrize(("quiet", "heartbeat", "tries", "expected"), [
    (60, 60, [0, 0, 0], []),
    (0, 60, [0, 0, 0], ["job waits: FLARE has not"]),
    (0, 0, [0, 0], ["job waits: FLARE has not"] * 2),
    (60, 60, [1, 1, 1, 2, 2], ["try 1 of", "try 2 of"]),
])  # fmt: skip
def test_a_waiting_job_is_reported_now_and_then(monkeypatch, quiet, heartbeat, tries, expected):
    monkeypatch.setattr(job_watch, "_QUIET", quiet)
    monkeypatch.setattr(job_watch, "_HEARTBEAT", heartbeat)
    facts = {"status": "SUBMITTED", "last_schedule_time": 1.0, "deploy_map": {}}
    metas = [{**facts, "schedule_history": ["t: few"] * made} for made in tries]
    left, messages = iter([*metas, {"status": "RUNNING"}, {"status": DONE}]), []
    waiting = SimpleNamespace(meta=lambda _: next(left), sites=set, server_started=lambda: 0.0)
    waiting.stats = lambda _: {}
    watch(waiting, "job", print, messages.append)
    assert len(messages) == len(expected)
    assert all(map(str.__contains__, messages, expected)), messages


OK = "not enough sites have enough resources (ok sites 1 < min sites 2)"
FEW = "connected sites (0) < min_sites (2)"


@pytest.mark.parametrize(("reasons", "connected", "expected"), [
    ([], "", "^FLARE has not tried to start it: other jobs run, or no.*; not connected: a, b$"),
    ([OK], "ab", "^only 1 of the 2 .*FLARE: not .*; try 1 .* 12:00:10, .* up at 12:40:30$"),
    ([OK] * 5 + [FEW], "a", "^only 0 of .*; not connected: b; try 6 of 10, .* 12:05:20, and"),
    ([FEW] * 7, "", "the next at 12:10:00, and FLARE gives up at 12:30:00$"),
    (["no site b"], "a", "^FLARE could not start it .FLARE: no site b.; not"),
])  # fmt: skip
def test_why_a_job_waits_and_until_when_is_reported(reasons, connected, expected):
    meta = {
        "deploy_map": {"app_server": ["server"], "app_client": ["a", "b"]},
        "schedule_history": [f"2026-01-01 12:00:00: {reason}" for reason in reasons] or None,
        "last_schedule_time": datetime(2026, 1, 1, 12).timestamp(),
    }
    assert re.search(expected, job_watch.describe_wait(meta, connected))


def test_flares_scheduler_tries_as_often_and_waits_as_long_as_is_reported():
    known = inspect.signature(DefaultJobScheduler).parameters
    names = ("max_schedule_count", "min_schedule_interval", "max_schedule_interval")
    ours = [job_watch.TRIES, job_watch.SHORTEST, job_watch.LONGEST_PAUSE]
    assert [known[name].default for name in names] == ours


ENDS = {
    "aborted": ({"status": "FINISHED:ABORTED"}, "it was aborted by an admin.", True),
    "not started":
        ({"status": "FINISHED:FAILED_TO_RUN",
          "job_deploy_detail": ["server: OK", "a: OK", "b: BYOC not permitted", "1 < 2"]},
         "it could not be started: b: BYOC not permitted; 1 < 2", True),
    "not scheduled":
        ({"status": "FINISHED:CANT_SCHEDULE",
          "schedule_history": ["2026: too few"] * 2 + ["2026: max", "2026: scheduled"]},
         "it could not be started: too few; max", True),
    "not loaded":
        ({"status": "FINISHED:ABNORMAL"}, "FINISHED:ABNORMAL, and no file on this machine", True),
    "killed": ({"status": "FINISHED:ABNORMAL", "seen": 1}, "FINISHED:ABNORMAL, and no file", False),
    "lost": ({"status": "RUNNING", "lost": True}, "the server was restarted while it ran", False),
}  # fmt: skip
"""How a job ended -> what FLARE knows of it, the reason, and whether another attempt is useless."""


@pytest.mark.parametrize("elsewhere", [False, True])
@pytest.mark.parametrize(("facts", "expected", "final"), ENDS.values(), ids=ENDS)
def test_flares_metadata_explain_how_a_job_ended(tmp_path, facts, expected, final, elsewhere):
    end = End(facts, facts.get("lost", False), Progress(facts.get("seen", 0)))
    failure = explain("1", end, tmp_path, {} if elsewhere else {"server": tmp_path})
    assert failure.reason.startswith(expected) and failure.final == final
    if "no file on this machine" in expected:
        log = "<its workspace>/1/error_log.txt, and its notes <its workspace>/local_notes/1.txt"
        assert (log if elsewhere else f"The server's log is {tmp_path}/log.txt") in failure.reason


def test_a_job_is_explained_by_its_record_by_flares_log_and_by_rounds_that_were_not_seen(tmp_path):
    def explained(*events, seen=0):
        lines = [json.dumps({"event": event}) + "\n" for event in events]
        (tmp_path / "run_record.jsonl").write_text("".join(lines))
        end = End({"status": "FINISHED:EXECUTION_EXCEPTION"}, False, Progress(seen))
        return explain("1", end, tmp_path, {"a": tmp_path / "a", "server": tmp_path})

    (tmp_path / "error_log.txt").write_text("TypeError: no class x\n")
    assert explained().final and not explained(seen=1).final
    assert "TypeError: no class x" in explained().reason
    killed = explained("started", "round")
    assert killed.reason.startswith("a process at the server ended.") and not killed.final
