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


def ended(session, show=lambda now: None):
    return watch(session, "job", show)


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


def test_a_job_on_its_way_out_is_not_asked_any_more():
    session = Session(["RUNNING"] * 9 + ["FINISHED:COMPLETED"], [{"RunRecord": ROUND}])
    ended(session)
    assert session.asked == 2


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
