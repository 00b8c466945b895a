import json

import pytest
from nvflare.fuel.flare_api import api_spec

from cxr_study.deployment import flare_session
from cxr_study.deployment.flare_session import FlareSession, SessionError


class Flare:
    """FLARE's session, as far as it is used; `trouble` are errors that it raises one by one."""

    def __init__(self, trouble=()):
        self.trouble = list(trouble)
        self.submitted = None
        self.tokens = []
        self.closed = 0

    def get_job_meta(self, job_id):
        if self.trouble:
            raise self.trouble.pop(0)
        return {"status": "RUNNING"}

    def list_jobs(self):
        statuses = ("FINISHED:COMPLETED", "RUNNING", "SUBMITTED")
        return [{"job_id": str(n), "status": s} for n, s in enumerate(statuses, 1)]

    def show_stats(self, job_id, target):
        if self.trouble:
            raise self.trouble.pop(0)
        return {target: {"RunRecord": {"rounds": 2}}}

    def submit_job(self, folder, submit_token):
        self.tokens.append(submit_token)
        if self.trouble:
            raise self.trouble.pop(0)
        self.submitted = folder
        (flare_session.Path(folder) / ".__nvfl_sig.json").touch()  # as FLARE does
        return "1234"

    def download_job_result(self, job_id, folder):
        (flare_session.Path(folder) / job_id).mkdir()
        return f"{folder}/{job_id}"

    def close(self):
        self.closed += 1


@pytest.fixture
def kit(tmp_path):
    (tmp_path / "lead/startup").mkdir(parents=True)
    admin = {"admin": {"username": "lead@university.org", "host": "hub", "port": 8002}}
    (tmp_path / "lead/startup/fed_admin.json").write_text(json.dumps(admin))
    return tmp_path / "lead"


@pytest.fixture
def connect(monkeypatch, kit):
    """Says what the next connections give: a session, or an error."""

    def connect(*outcomes):
        left = list(outcomes)

        def new(user, location, **_):
            assert (user, location) == ("lead@university.org", str(kit))
            print("Connecting to FLARE ...")
            outcome = left.pop(0)
            if isinstance(outcome, Exception):
                raise outcome
            return outcome

        monkeypatch.setattr(flare_session, "new_secure_session", new)
        monkeypatch.setattr(flare_session, "listens", lambda *server: server == ("hub", 8002))
        monkeypatch.setattr(flare_session.time, "sleep", lambda _: None)

    return connect


class TestConnection:
    def test_flare_says_nothing_on_the_terminal(self, kit, connect, capsys):
        connect(Flare())
        with FlareSession(kit):
            pass
        assert capsys.readouterr().out == ""

    def test_a_server_that_comes_up_is_waited_for(self, kit, connect):
        connect(api_spec.NoConnection("down"), Flare())
        with FlareSession(kit) as session:
            assert session.meta("x") == {"status": "RUNNING"}

    def test_a_server_that_does_not_is_named_by_the_kit(self, kit, connect):
        connect(*[api_spec.NoConnection("down")] * 9)
        with pytest.raises(SessionError, match=r"no FLARE server answers lead.*is .*down"):
            FlareSession(kit, timeout=0).__enter__()

    def test_while_nobody_listens_no_session_is_opened(self, kit, connect, monkeypatch):
        """For FLARE waits for ever when it gives one up while its connection is being made."""
        connect(Flare())
        answers = iter([False, False, True])
        monkeypatch.setattr(flare_session, "listens", lambda *_: next(answers))
        waits = []
        with FlareSession(kit, on_wait=waits.append) as session:
            assert session.meta("x") == {"status": "RUNNING"}
        assert waits == [60] and list(answers) == []
        monkeypatch.setattr(flare_session, "listens", lambda *_: False)
        with pytest.raises(SessionError, match="within 0 s: nobody listens at hub:8002"):
            FlareSession(kit, timeout=0).__enter__()

    def test_who_is_not_let_in_is_told(self, kit, connect):
        connect(api_spec.AuthenticationError("expired"))
        with pytest.raises(SessionError, match="does not let lead in: expired"):
            FlareSession(kit).__enter__()

    def test_another_folder_is_no_kit(self, tmp_path):
        with pytest.raises(SessionError, match="holds no startup/fed_admin"):
            FlareSession(tmp_path).__enter__()

    def test_a_connection_that_was_lost_is_made_anew(self, kit, connect):
        lost = Flare([api_spec.SessionClosed("gone")] * 9)
        connect(lost, Flare())
        with FlareSession(kit) as session:
            assert session.meta("x") == {"status": "RUNNING"}
        assert lost.closed == 1

    def test_a_server_that_goes_away_is_waited_for_as_long_as_the_caller_likes(
        self, kit, connect, monkeypatch
    ):
        clock = iter(range(0, 9000, 30))
        monkeypatch.setattr(flare_session.time, "monotonic", lambda: next(clock))
        gone = [api_spec.NoConnection("down")] * 9
        lost = Flare([api_spec.SessionClosed("gone")])
        waits = []
        connect(lost, *gone, Flare())
        with FlareSession(kit, patience=600, on_wait=waits.append) as session:
            assert session.meta("x") == {"status": "RUNNING"}
        assert waits == [600]
        connect(Flare([api_spec.SessionClosed("gone")]), *gone, Flare())
        with (
            FlareSession(kit, patience=200) as session,
            pytest.raises(SessionError, match=r"no FLARE server answers lead.* within 200 s"),
        ):
            session.meta("x")

    def test_one_that_never_answers_is_not_asked_for_ever(self, kit, connect):
        connect(*[Flare([api_spec.NoReply("late")]) for _ in range(9)])
        with (
            FlareSession(kit, patience=0) as session,
            pytest.raises(SessionError, match="does not answer lead: late"),
        ):
            session.meta("x")


class TestCommands:
    def test_a_refusal_is_told_with_its_reason(self, kit, connect):
        connect(Flare([api_spec.AuthorizationError("not you")]))
        with FlareSession(kit) as session, pytest.raises(SessionError, match="asks: not you"):
            session.meta("x")

    def test_the_running_jobs_are_named(self, kit, connect):
        connect(Flare())
        with FlareSession(kit) as session:
            assert session.running() == ["2"]

    def test_a_job_that_does_not_run_says_nothing_of_itself(self, kit, connect):
        connect(Flare([api_spec.JobNotRunning("x"), api_spec.JobNotFound("x")]))
        with FlareSession(kit) as session:
            assert session.stats("x") == {} == session.stats("x")
            assert session.stats("x") == {"RunRecord": {"rounds": 2}}

    def test_a_copy_is_submitted_under_the_jobs_name(self, kit, connect, tmp_path):
        job = tmp_path / "surgical"
        job.mkdir()
        flare = Flare()
        connect(flare)
        with FlareSession(kit) as session:
            assert session.submit(job) == "1234"
        assert flare.submitted.endswith("/surgical") and list(job.iterdir()) == []

    def test_a_job_whose_reply_was_lost_is_submitted_once(self, kit, connect, tmp_path):
        job = tmp_path / "surgical"
        job.mkdir()
        lost, found = Flare([api_spec.SessionClosed("gone")]), Flare()
        connect(lost, found)
        with FlareSession(kit) as session:
            session.submit(job)
            session.submit(job)
        assert lost.tokens == found.tokens[:1] and len(set(found.tokens)) == 2

    def test_what_was_downloaded_before_is_replaced(self, kit, connect, tmp_path):
        (tmp_path / "1").mkdir()
        (tmp_path / "1/old").touch()
        connect(Flare())
        with FlareSession(kit) as session:
            assert not list(session.download("1", tmp_path).iterdir())
