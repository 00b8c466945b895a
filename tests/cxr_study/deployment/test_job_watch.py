import json

import pytest

from cxr_study.deployment import job_watch
from cxr_study.deployment.job_watch import Progress, watch

DONE = "FINISHED:COMPLETED"
ROUND = {"rounds": 1, "best": None, "stopped": False}


class Session:
    """A session whose server answers one look at the job after the other."""

    def __init__(self, statuses, stats=(), started=0.0):
        self.statuses = iter(statuses)
        self.told = iter(stats)
        self.started = started
        self.asked = 0

    def meta(self, job_id):
        status = next(self.statuses)
        if status == "JUST DISPATCHED":
            return {"status": "DISPATCHED"}
        return {"status": status, "last_schedule_time": 100.0 if status != "SUBMITTED" else None}

    def server_started(self):
        return self.started

    def stats(self, job_id):
        self.asked += 1
        return next(self.told, {})


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(job_watch, "POLL", 0.0)
    monkeypatch.setattr(job_watch, "_QUIET", 0.0)


def ended(session, show=lambda now: None, **arguments):
    return watch(session, "job", show, **arguments)


@pytest.mark.parametrize(
    ("statuses", "started", "completed", "lost"),
    [
        (["SUBMITTED", "DISPATCHED", "RUNNING", DONE], 0.0, True, False),
        (["FINISHED:ABORTED"], 0.0, False, False),
        (["RUNNING"], 200.0, False, True),  # scheduled before the server started
        (["DISPATCHED"], 200.0, False, True),
        (["SUBMITTED", DONE], 200.0, True, False),
        (["JUST DISPATCHED", DONE], 200.0, True, False),  # the server has not noted it yet
    ],
)
def test_a_job_ends_or_is_lost_where_the_server_was_restarted(statuses, started, completed, lost):
    end = ended(Session(statuses, started=started))
    assert (end.completed, end.lost) == (completed, lost)


def test_its_progress_is_shown_when_it_changes():
    shown = []
    told = [ROUND, {**ROUND, "of a newer version": 1}, {**ROUND, "rounds": 2}]
    stats = [{"RunRecord": now} for now in told]
    end = ended(Session(["RUNNING"] * 3 + [DONE], stats), shown.append)
    assert [now.rounds for now in shown] == [1, 2]
    assert end.seen == Progress(2)


def test_a_job_on_its_way_out_is_not_asked_for_long():
    session = Session(["RUNNING"] * 20 + [DONE], [*[{}] * 5, {"RunRecord": ROUND}])
    ended(session)
    assert session.asked == 5 + 1 + job_watch._UNANSWERED


def test_a_question_that_was_not_answered_is_asked_again():
    later = {"RunRecord": {**ROUND, "rounds": 4}}
    answers = [{"RunRecord": ROUND}, {}, {}, later, {}, {}, {"RunRecord": {**ROUND, "rounds": 5}}]
    assert ended(Session(["RUNNING"] * 7 + [DONE], answers)).seen == Progress(5)


def test_a_job_that_has_just_started_is_asked_nothing(monkeypatch):
    monkeypatch.setattr(job_watch, "_QUIET", 60.0)
    session = Session(["RUNNING"] * 3 + [DONE])
    ended(session)
    assert session.asked == 0


BEST = {"event": "best", "round": 1, "value": 0.5}
NEWER = [{"event": "best_of_a_newer_version", "facts": 1}, {"event": "silent", "site": "a"}]


@pytest.mark.parametrize(
    ("events", "told"),
    [
        ([BEST, {"event": "round", "round": 0}, {"event": "stopped"}], Progress(1, BEST, True)),
        ([BEST, {"event": "best_dropped"}, {"event": "round"}], Progress(1, None, False)),
        ([BEST, *NEWER], Progress(0, BEST, False)),
    ],
)
def test_where_the_record_is_at_hand_it_is_read_and_nobody_asked(tmp_path, events, told):
    (tmp_path / "job").mkdir()
    lines = "".join(json.dumps(event) + "\n" for event in events)
    (tmp_path / "job/run_record.jsonl").write_text(lines)
    session, shown = Session(["RUNNING", "FINISHED:COMPLETED"]), []
    assert ended(session, shown.append, server=tmp_path).seen == told
    assert shown == [told] and session.asked == 0


def test_before_there_is_a_record_nothing_is_shown(tmp_path):
    assert ended(Session(["RUNNING", DONE]), server=tmp_path).seen == Progress()
