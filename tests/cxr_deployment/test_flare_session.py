import datetime
import json
import re
import ssl
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from nvflare.fuel.common.excepts import ConfigError
from nvflare.fuel.flare_api import api_spec

from cxr_deployment import flare_session
from cxr_deployment.flare_session import FlareSession, SessionError, certificate_problem


class Flare:
    """FLARE's session, as far as it is used; `trouble` are errors that it raises one by one."""

    def __init__(self, trouble=(), refused=None):
        self.trouble, self.refused = list(trouble), refused
        self.api = SimpleNamespace(close=self.close)
        self.submitted, self.tokens, self.closed, self.aborted = None, [], 0, 0

    def _stumble(self):
        if self.trouble:
            raise self.trouble.pop(0)

    def try_connect(self, timeout):
        print("Connecting to FLARE ...")
        if self.refused:
            raise self.refused

    def get_job_meta(self, job_id):
        self._stumble()
        return {"status": "FINISHED:ABORTED" if self.aborted == 3 else "RUNNING"}

    def list_jobs(self, detailed):
        statuses = ("FINISHED:COMPLETED", "RUNNING", "SUBMITTED")
        return [{"job_id": str(n), "status": s} for n, s in enumerate(statuses, 1)]

    def abort_job(self, job_id):
        self._stumble()
        self.aborted += 1

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
def open_session(monkeypatch, tmp_path):
    """A session whose connections turn out so: Flare, an error, or None where no server listens."""
    kit = tmp_path / "lead"
    (kit / "startup").mkdir(parents=True)
    admin = {"admin": {"username": "lead@university.org", "host": "hub", "port": 8002}}
    (kit / "startup/fed_admin.json").write_text(json.dumps(admin))
    clock = SimpleNamespace(monotonic=time.monotonic)  # the module's alone
    monkeypatch.setattr(flare_session, "time", clock)

    def open_session(*outcomes, distrusted=None, **arguments):
        left, waits = list(outcomes), []

        def connection_error(*server):
            assert server == ("hub", 8002)
            listening = bool(left) and left[0] is not None
            del left[: not listening]
            return None if listening else "no server listens"

        def new(user, location, study):
            assert (user, location, study) == ("lead@university.org", str(kit), "default")
            outcome = left.pop(0)
            return Flare(refused=outcome) if isinstance(outcome, Exception) else outcome

        monkeypatch.setattr(flare_session, "Session", new)
        monkeypatch.setattr(flare_session, "connection_error", connection_error)
        monkeypatch.setattr(flare_session, "certificate_problem", lambda kit, admin: distrusted)
        slept = []
        clock.sleep = slept.append
        session = FlareSession(kit, on_wait=waits.append, **{"pauses": [9, 60], **arguments})
        session.waits, session.slept = waits, slept
        return session.__enter__()

    return open_session


FOUND = {"status": "RUNNING"}
WAITING = "the server does not answer; waiting for up to 60 s"
FULL = api_spec.InternalError("OSError: [Errno 28] No space left on device")
DOWN = [api_spec.NoConnection("down")] * 9


def gone(times=1):
    """A session that FLARE closes again and again."""
    return Flare([api_spec.SessionClosed("gone")] * times)


class TestConnection:
    def test_a_session_that_flare_never_closes_is_left_to_itself(self, open_session, monkeypatch):
        monkeypatch.setattr(flare_session, "_CLOSING", 0.1)
        stuck, ended = gone(), threading.Event()
        stuck.close = ended.wait
        try:
            assert open_session(stuck, Flare()).meta("x") == FOUND
        finally:
            ended.set()

    def test_it_is_opened_quietly_once_a_server_listens_and_reopened(self, open_session, capsys):
        """FLARE waits without limit if a session is closed while its connection is being made."""
        lost = gone(9)
        session = open_session(None, None, lost, Flare())
        assert (session.meta("x"), session.waits, lost.closed) == (FOUND, [WAITING], 1)
        assert capsys.readouterr().out == ""

    @pytest.mark.parametrize(("outcomes", "message"), [
        ([], "within 0 s: no server listens"),
        (DOWN, r"no FLARE server answers lead.*is .* within 0 s.*down"),
        ([api_spec.AuthenticationError("expired")], "does not let lead in: expired"),
        ([Flare([api_spec.AuthorizationError("not you")])], "asks: not you"),
        ([Flare([api_spec.NoReply("late")]) for _ in DOWN], "answers lead.* within 0 s: late"),
    ])  # fmt: skip
    def test_each_failure_has_its_message(self, open_session, tmp_path, outcomes, message):
        with pytest.raises(SessionError, match=message):
            open_session(*outcomes, timeout=0, patience=0).meta("x")
        with pytest.raises(SessionError, match="holds no startup/fed_admin"):
            FlareSession(tmp_path).__enter__()

    @pytest.mark.parametrize("error", [DOWN[0], ConfigError("x"), ValueError("x")])
    def test_kit_and_server_without_trust_are_not_tried_again(self, open_session, error):
        with pytest.raises(SessionError, match=r"^the root is another$"):
            open_session(error, Flare(), distrusted="the root is another")

    def test_a_lost_server_is_waited_for_as_long_as_is_asked(self, open_session, monkeypatch):
        clock = iter(range(0, 9000, 30))
        monkeypatch.setattr(flare_session.time, "monotonic", lambda: next(clock))
        patient = open_session(gone(), *DOWN, Flare(), patience=600)
        assert (patient.meta("x"), patient.waits) == (FOUND, [WAITING.replace("60", "600")])
        with pytest.raises(SessionError, match=r"no FLARE server answers lead.* within 200 s"):
            open_session(gone(), *DOWN, Flare(), patience=200).meta("x")


def test_a_site_that_is_silent_while_others_are_not_is_not_connected(open_session, monkeypatch):
    session = open_session(Flare())
    monkeypatch.setattr(FlareSession, "last_seen", lambda _: {"a": 1000.0, "b": 945.0, "c": 930.0})
    assert session.sites() == {"a", "b"}


UNABLE = f"the server cannot do what lead asks: {FULL}"


class TestTrouble:
    """What a server could not do, as with a full disk, and what it refuses."""

    @pytest.mark.parametrize("error", [FULL, RuntimeError(str(FULL))])
    def test_it_is_asked_again_after_pauses_and_says_why(self, open_session, error):
        session = open_session(Flare([error] * 3), patience=200)
        assert session.meta("x") == FOUND
        assert session.waits == [f"{UNABLE}; next attempt in {pause} s" for pause in (9, 60, 60)]
        assert session.slept == [9, 60, 60]

    def test_by_default_it_is_asked_again_too(self, open_session):
        session = open_session(Flare([FULL]), pauses=FlareSession.pauses)
        assert session.meta("x") == FOUND and session.slept == [5.0]

    @pytest.mark.parametrize(("error", "patience", "message"), [
        (FULL, 8, UNABLE),
        (api_spec.InternalError("syntax error: x"), 999, "refuses what lead asks: syntax error"),
        (api_spec.InvalidJobDefinition("no apps"), 999, "refuses what lead asks: no apps"),
        (api_spec.JobNotFound("no such job"), 999, "refuses what lead asks: no such job"),
    ])  # fmt: skip
    def test_patience_ends_and_a_refusal_is_final(self, open_session, error, patience, message):
        session = open_session(Flare([error]), patience=patience)
        with pytest.raises(SessionError, match=re.escape(message)):
            session.meta("x")
        assert session.waits == []

    def test_an_abort_is_not_waited_for(self, open_session, monkeypatch):
        session = open_session(Flare([FULL]), patience=999)
        with pytest.raises(SessionError, match="could not abort it: OSError"):
            session.abort("x")
        assert session.waits == []
        clock = iter(range(0, 9000, 1))
        monkeypatch.setattr(flare_session.time, "monotonic", lambda: next(clock))
        with pytest.raises(SessionError, match="within 3 s"):
            open_session(gone(), *DOWN, patience=999).abort("x")
        with pytest.raises(SessionError, match="within 50 s"):
            open_session(gone(), *DOWN * 9, patience=999).abort("x", 50.0)


class TestCommands:
    def test_an_abort_that_flare_forgets_is_asked_for_again(self, open_session):
        session = open_session(Flare())
        assert session.abort("x", patience=0.0) == "RUNNING"
        assert session.abort("x") == "FINISHED:ABORTED" and session.slept == [0.5]

    def test_sites_that_are_missing_are_waited_for(self, open_session, monkeypatch):
        session, came = open_session(Flare()), iter([set(), {"a"}, {"a"}, {"a", "b"}])
        monkeypatch.setattr(FlareSession, "sites", lambda _: next(came))
        assert session.missing("ba") == ["a", "b"] and session.slept == []
        assert session.missing("ab", 60.0) == [] and session.slept == [0.2, 0.2]

    def test_jobs_that_run_are_named_and_others_say_nothing_of_themselves(self, open_session):
        asked = open_session(Flare([api_spec.JobNotRunning("x"), api_spec.JobNotFound("x")]))
        assert asked.stats("x") == {} == asked.stats("x")
        assert asked.stats("x") == {"RunRecord": {"rounds": 2}}
        assert asked.running() == ["2"]

    def test_a_copy_is_submitted_once_also_where_the_reply_was_lost(self, open_session, tmp_path):
        job = tmp_path / "surgical"
        job.mkdir()
        lost, found = gone(), Flare()
        asked = open_session(lost, found)
        assert [asked.submit(job), asked.submit(job)] == ["1234"] * 2
        assert found.submitted.endswith("/surgical") and list(job.iterdir()) == []
        assert lost.tokens == found.tokens[:1] and len(set(found.tokens)) == 2

    def test_what_was_downloaded_before_is_replaced(self, open_session, tmp_path):
        (tmp_path / "1").mkdir()
        (tmp_path / "1/old").touch()
        assert not list(open_session(Flare()).download("1", tmp_path).iterdir())


DAY = datetime.timedelta(days=1)
YESTERDAY = datetime.datetime.now(datetime.timezone.utc) - DAY
OURS, THEIRS = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))


def made(by=OURS, ends=2, issuer="ours"):
    """A certificate that ends so many days after yesterday."""
    names = (x509.NameAttribute(x509.NameOID.COMMON_NAME, text) for text in ("ours", issuer))
    subject, signer = (x509.Name([name]) for name in names)
    begin, end = YESTERDAY - 9 * DAY, YESTERDAY + ends * DAY
    builder = x509.CertificateBuilder(signer, subject, OURS.public_key(), 1, begin, end)
    certificate = builder.sign(by, hashes.SHA256())
    return certificate.public_bytes(serialization.Encoding.PEM).decode()


@pytest.mark.parametrize(("own", "server", "message"), [
    (made(), made(), None),
    (made(), None, None),  # it shows none
    (made(), made(THEIRS), "not made for this server: .*'CN=ours' of 2.* signed the server's"),
    (made(), made(THEIRS, issuer="theirs"), "has not signed the server's certificate"),
    (made(ends=0), None, rf"client\.crt of kit .*lead expired on {YESTERDAY:%Y-%m-%d}\. "),
    (made(), made(ends=0), "the server's certificate expired on"),
], ids=["fits", "none", "other key", "other root", "ended", "server's ended"])  # fmt: skip
def test_what_keeps_a_kit_and_a_server_apart_is_named(tmp_path, monkeypatch, own, server, message):
    def shown(address, timeout):
        if server is None or address != ("hub", 8002):
            raise ssl.SSLError("no certificate was given")
        return server

    monkeypatch.setattr(ssl, "get_server_certificate", shown)
    (tmp_path / "lead/startup").mkdir(parents=True)
    for name, content in (("rootCA.pem", made()), ("client.crt", own)):
        (tmp_path / "lead/startup" / name).write_text(content)
    admin = {"host": "hub", "port": "8002", "ca_cert": "rootCA.pem", "client_cert": "client.crt"}
    found = certificate_problem(tmp_path / "lead", admin)
    assert re.search(message, found) if message else found is None
