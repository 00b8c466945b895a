import json
from contextlib import ExitStack
from pathlib import Path

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

    def _stumble(self):
        if self.trouble:
            raise self.trouble.pop(0)

    def get_job_meta(self, job_id):
        self._stumble()
        return {"status": "RUNNING"}

    def list_jobs(self):
        statuses = ("FINISHED:COMPLETED", "RUNNING", "SUBMITTED")
        return [{"job_id": str(n), "status": s} for n, s in enumerate(statuses, 1)]

    def show_stats(self, job_id, target):
        self._stumble()
        return {target: {"RunRecord": {"rounds": 2}}}

    def submit_job(self, folder, submit_token):
        self.tokens.append(submit_token)
        self._stumble()
        self.submitted = folder
        (Path(folder) / ".__nvfl_sig.json").touch()  # as FLARE does
        return "1234"

    def download_job_result(self, job_id, folder):
        (Path(folder) / job_id).mkdir()
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


@pytest.fixture
def asked(kit, connect):
    """Asks of a job in a session whose connections turn out so; the answer, and the waits."""

    def asked(*outcomes, **arguments):
        connect(*outcomes)
        waits = []
        with FlareSession(kit, on_wait=waits.append, **arguments) as session:
            return session.meta("x"), waits

    return asked


FOUND = {"status": "RUNNING"}
DOWN = [api_spec.NoConnection("down")] * 9


class TestConnection:
    def test_a_server_that_comes_up_is_waited_for_in_silence(self, asked, capsys):
        assert asked(DOWN[0], Flare()) == (FOUND, [60])
        assert capsys.readouterr().out == ""

    @pytest.mark.parametrize(
        ("outcomes", "message"),
        [
            (DOWN, r"no FLARE server answers lead.*is .* within 0 s.*down"),
            ([api_spec.AuthenticationError("expired")], "does not let lead in: expired"),
            ([Flare([api_spec.AuthorizationError("not you")])], "asks: not you"),
            ([Flare([api_spec.NoReply("late")]) for _ in DOWN], "does not answer lead: late"),
        ],
    )
    def test_what_does_not_work_is_told(self, asked, outcomes, message):
        with pytest.raises(SessionError, match=message):
            asked(*outcomes, timeout=0, patience=0)

    def test_while_nobody_listens_no_session_is_opened(self, kit, asked, connect, monkeypatch):
        """For FLARE waits for ever when it gives one up while its connection is being made."""
        answers = iter([False, False, True])
        connect()
        monkeypatch.setattr(flare_session, "listens", lambda *_: next(answers))
        monkeypatch.setattr(flare_session, "new_secure_session", lambda *_, **__: Flare())
        waits = []
        with FlareSession(kit, on_wait=waits.append) as session:
            assert session.meta("x") == FOUND
        assert waits == [60] and list(answers) == []
        monkeypatch.setattr(flare_session, "listens", lambda *_: False)
        with pytest.raises(SessionError, match="within 0 s: nobody listens at hub:8002"):
            FlareSession(kit, timeout=0).__enter__()

    def test_another_folder_is_no_kit(self, tmp_path):
        with pytest.raises(SessionError, match="holds no startup/fed_admin"):
            FlareSession(tmp_path).__enter__()

    def test_a_connection_that_was_lost_is_made_anew(self, asked):
        lost = Flare([api_spec.SessionClosed("gone")] * 9)
        assert asked(lost, Flare()) == (FOUND, [])
        assert lost.closed == 1

    def test_a_server_that_goes_away_is_waited_for_as_long_as_the_caller_likes(
        self, asked, monkeypatch
    ):
        clock = iter(range(0, 9000, 30))
        monkeypatch.setattr(flare_session.time, "monotonic", lambda: next(clock))
        lost = [Flare([api_spec.SessionClosed("gone")]) for _ in range(2)]
        assert asked(lost[0], *DOWN, Flare(), patience=600) == (FOUND, [600])
        with pytest.raises(SessionError, match=r"no FLARE server answers lead.* within 200 s"):
            asked(lost[1], *DOWN, Flare(), patience=200)


class TestCommands:
    @pytest.fixture
    def session(self, kit, connect):
        """A session over connections that turn out so."""
        with ExitStack() as stack:

            def session(*outcomes):
                connect(*outcomes)
                return stack.enter_context(FlareSession(kit))

            yield session

    def test_the_running_jobs_are_named(self, session):
        assert session(Flare()).running() == ["2"]

    def test_a_job_that_does_not_run_says_nothing_of_itself(self, session):
        asked = session(Flare([api_spec.JobNotRunning("x"), api_spec.JobNotFound("x")]))
        assert asked.stats("x") == {} == asked.stats("x")
        assert asked.stats("x") == {"RunRecord": {"rounds": 2}}

    def test_a_copy_is_submitted_once_also_where_the_reply_was_lost(self, session, tmp_path):
        job = tmp_path / "surgical"
        job.mkdir()
        lost, found = Flare([api_spec.SessionClosed("gone")]), Flare()
        asked = session(lost, found)
        assert [asked.submit(job), asked.submit(job)] == ["1234"] * 2
        assert found.submitted.endswith("/surgical") and list(job.iterdir()) == []
        assert lost.tokens == found.tokens[:1] and len(set(found.tokens)) == 2

    def test_what_was_downloaded_before_is_replaced(self, session, tmp_path):
        (tmp_path / "1").mkdir()
        (tmp_path / "1/old").touch()
        assert not list(session(Flare()).download("1", tmp_path).iterdir())
