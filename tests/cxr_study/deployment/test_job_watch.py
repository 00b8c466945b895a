import json

import pytest

from cxr_study.deployment import job_watch
from cxr_study.deployment.job_watch import Progress, watch

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


def test_a_job_is_watched_from_its_submission_to_its_end():
    end = ended(Session(["SUBMITTED", "DISPATCHED", "RUNNING", "FINISHED:COMPLETED"]))
    assert end.completed and not end.lost


def test_another_end_is_none_that_completed():
    assert not ended(Session(["FINISHED:ABORTED"])).completed


def test_its_progress_is_shown_when_it_changes():
    shown = []
    stats = [{"RunRecord": ROUND}, {"RunRecord": ROUND}, {"RunRecord": {**ROUND, "rounds": 2}}]
    end = ended(Session(["RUNNING"] * 3 + ["FINISHED:COMPLETED"], stats), shown.append)
    assert [now.rounds for now in shown] == [1, 2]
    assert end.seen == Progress(2)


def test_a_job_on_its_way_out_is_not_asked_for_long():
    starting = [{}] * 5
    session = Session(["RUNNING"] * 20 + ["FINISHED:COMPLETED"], [*starting, {"RunRecord": ROUND}])
    ended(session)
    assert session.asked == len(starting) + 1 + job_watch._UNANSWERED


def test_a_question_that_was_not_answered_is_asked_again():
    later = {"RunRecord": {**ROUND, "rounds": 4}}
    answers = [{"RunRecord": ROUND}, {}, {}, later, {}, {}, {"RunRecord": {**ROUND, "rounds": 5}}]
    assert ended(Session(["RUNNING"] * 7 + ["FINISHED:ABORTED"], answers)).seen == Progress(5)


def test_a_job_that_has_just_started_is_asked_nothing(monkeypatch):
    monkeypatch.setattr(job_watch, "_QUIET", 60.0)
    session = Session(["RUNNING"] * 3 + ["FINISHED:COMPLETED"])
    ended(session)
    assert session.asked == 0


@pytest.mark.parametrize("status", ["RUNNING", "DISPATCHED"])
def test_a_job_that_was_scheduled_before_the_server_started_is_lost(status):
    end = ended(Session([status], started=200.0))
    assert end.lost and not end.completed


def test_a_job_that_waited_while_the_server_was_restarted_is_not():
    assert ended(Session(["SUBMITTED", "FINISHED:COMPLETED"], started=200.0)).completed


def test_nor_is_one_whose_schedule_the_server_has_not_noted_yet():
    assert ended(Session(["JUST DISPATCHED", "FINISHED:COMPLETED"], started=200.0)).completed


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


def test_what_a_newer_server_says_beside_it_is_passed_over():
    stats = [{"RunRecord": {**ROUND, "of a newer version": 1}}]
    assert ended(Session(["RUNNING", "FINISHED:COMPLETED"], stats)).seen == Progress(1)


def test_before_there_is_a_record_nothing_is_shown(tmp_path):
    assert ended(Session(["RUNNING", "FINISHED:COMPLETED"]), server=tmp_path).seen == Progress()
