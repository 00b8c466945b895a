"""A session with a FLARE server through an admin's startup kit: submit, progress, download."""

from __future__ import annotations

import itertools
import json
import logging
import re
import shutil
import ssl
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, field
from datetime import datetime, timezone
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar
from uuid import uuid4

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from nvflare.apis.fl_exception import FLCommunicationError
from nvflare.apis.job_def import DEFAULT_STUDY
from nvflare.fuel.common.excepts import ConfigError
from nvflare.fuel.flare_api import api_spec
from nvflare.fuel.flare_api.flare_api import Session

from cxr_study.deployment.processes import unreachable

_LOST = (
    api_spec.NoConnection, api_spec.SessionClosed, api_spec.SessionExpired, api_spec.NoReply,
    FLCommunicationError,
)  # fmt: skip
_SHUT_OUT = (ConfigError, api_spec.AuthenticationError, api_spec.AuthorizationError)
_UNABLE = (api_spec.InternalError, RuntimeError)
"""What FLARE makes of an exception at the server, such as that of a full disk."""

_WRONG = re.compile("(syntax|protocol) error")
"""How those of them begin that say the same another time."""

PAUSES = (60.0, 120.0, 300.0)
"""Seconds before a second, third, fourth try of what the server could not do; then the last."""

_LOGINS = 3
_PARTING = 3.0
"""Seconds to wait for a server that is to abort a job before this command ends."""

SILENT = 60.0
"""Seconds without a sign of life, which sites give every 10, after which one is taken for gone."""

T = TypeVar("T")


def pauses(given: Sequence[float]) -> Iterator[float]:
    """Pauses between tries, of which the last comes again and again."""
    return itertools.chain(given, itertools.repeat(given[-1]))


class SessionError(ValueError):
    """The server cannot be reached, or refuses this user or what it was asked."""


@dataclass(eq=False)
class FlareSession:
    """A session of an admin, which outlives a restart of the server; for a `with` block.

    What the server could not do, because its disk is full for instance, is asked again; what it
    refuses is not.

    Args:
        kit: The admin's startup kit, the folder that holds startup/.
        timeout: Seconds to wait for the server at first. Default 60.
        patience: Seconds to wait for it whenever it is gone later, or could not do what it was
            asked. Default 60.
        on_wait: Called with what is waited for, when that begins. Default: nothing is.
        pauses: See `PAUSES`.
        study: FLARE's study that it works in. Default "default", which every network has.
    """

    kit: Path
    timeout: float = 60.0
    patience: float = 60.0
    on_wait: Callable[[str], None] = lambda text: None
    pauses: Sequence[float] = PAUSES
    study: str = DEFAULT_STUDY
    _session: Session | None = field(default=None, init=False)

    def __enter__(self) -> FlareSession:
        if not (self.kit / "startup" / "fed_admin.json").is_file():
            raise SessionError(
                f"an admin's startup kit is needed; {self.kit} holds no startup/fed_admin.json. "
                "Give the folder that your project admin sent you."
            )
        # FLARE's loggers would write to the terminal where nothing else is set up.
        logging.getLogger("nvflare").addHandler(logging.NullHandler())
        self._ask(lambda session: None, patience=self.timeout)
        return self

    def __exit__(self, *error: object) -> None:
        self._close()

    def sites(self) -> set[str]:
        """Names of the sites that are connected, and not silent for `SILENT` when others are not.

        FLARE counts one that died as connected for ten minutes.
        """
        seen = self.last_seen()
        newest = max(seen.values(), default=0.0)
        return {site for site, at in seen.items() if newest - at < SILENT}

    def missing(self, sites: Collection[str], patience: float = 0.0) -> list[str]:
        """Those of some sites that are not connected, which are waited for."""
        deadline = time.monotonic() + patience
        while missing := sorted({*sites} - self.sites()):
            if time.monotonic() > deadline:
                break
            time.sleep(0.2)
        return missing

    def last_seen(self) -> dict[str, float]:
        """Site that is connected -> when it last gave a sign of life, seconds since 1970."""
        clients = self._ask(Session.get_connected_client_list)
        return {client.name: client.last_connect_time for client in clients}

    def versions(self) -> dict[str, str]:
        """FLARE's version at "server" and sites, or why it is not known."""
        told = self._ask(lambda session: session.report_version("all"))
        return {party: " ".join(map(str, facts.values())) for party, facts in told.items()}

    def server_started(self) -> float:
        """When the server started, seconds since 1970; a restarted one knows no running job."""
        return float(self._ask(Session.get_system_info).server_info.start_time)

    def submit(self, job: Path) -> str:
        """Submit a copy of a job folder, for FLARE writes its signatures into it; the job's id."""
        with TemporaryDirectory() as temporary:
            copy = Path(temporary) / job.name
            shutil.copytree(job, copy)
            once = str(uuid4())  # for a reply that is lost: FLARE then gives the same id again
            return str(self._ask(lambda s: s.submit_job(str(copy), submit_token=once)))

    def meta(self, job_id: str) -> dict[str, Any]:
        """What FLARE knows of a job: "status", "job_deploy_detail" and more."""
        meta: dict[str, Any] = self._ask(lambda session: session.get_job_meta(job_id))
        return meta

    def jobs(self) -> list[dict[str, Any]]:
        """What FLARE knows of each job (see `meta`), the oldest first."""
        jobs: list[dict[str, Any]] = self._ask(lambda session: session.list_jobs(detailed=True))
        return jobs

    def running(self) -> list[str]:
        """Ids of the jobs that FLARE says are running."""
        return [str(job["job_id"]) for job in self.jobs() if job["status"] == "RUNNING"]

    def stats(self, job_id: str) -> dict[str, dict[str, Any]]:
        """What the components of a running job at the server report, by name."""
        with suppress(api_spec.JobNotRunning, api_spec.JobNotFound, *_UNABLE):
            answer = self._ask(lambda session: session.show_stats(job_id, "server"), once=True)
            if isinstance(answer, dict) and isinstance(stats := answer.get("server"), dict):
                return stats
        return {}

    def abort(self, job_id: str, patience: float = 3.0) -> str:
        """Abort a job, if it runs, until it has ended or for `patience` seconds; its status then.

        Again and again, for FLARE forgets it of a job that is just being started. Whoever does so
        wants to go: a server that is gone is not waited for much longer.
        """
        deadline = time.monotonic() + patience
        while True:
            try:
                with suppress(api_spec.JobNotRunning, api_spec.JobNotFound):
                    self._ask(lambda session: session.abort_job(job_id), True, _PARTING)
            except _UNABLE as error:
                raise SessionError(f"the server could not abort it: {error}") from error
            meta = self._ask(lambda session: session.get_job_meta(job_id), patience=_PARTING)
            status = str(meta["status"])
            if status.startswith("FINISHED") or time.monotonic() > deadline:
                return status
            time.sleep(0.5)

    def download(self, job_id: str, folder: Path) -> Path:
        """Download a finished job's result; its folder, <folder>/<job id>."""
        shutil.rmtree(folder / job_id, ignore_errors=True)  # FLARE would put it inside
        at = self._ask(lambda session: session.download_job_result(job_id, str(folder.absolute())))
        return Path(at)

    def _ask(
        self, command: Callable[[Session], T], once: bool = False, patience: float | None = None
    ) -> T:
        """Give a command, again over a new connection where the present one is lost.

        And again where the server could not do it, after a pause: or it is given `once`, and all of
        FLARE's errors are the caller's but for a lost connection.
        """
        patience = self.patience if patience is None else patience
        deadline, before, waiting = time.monotonic() + patience, pauses(self.pauses), False
        while True:
            try:
                self._session = self._session or self._open()
                return command(self._session)
            except Exception as error:  # of many kinds: FLARE's share no base
                opening = self._session is None
                if opening and isinstance(error, _SHUT_OUT):
                    shut_out = f"the server does not let {self.kit.name} in: {error}."
                    raise SessionError(shut_out) from error
                unable = opening and isinstance(error, api_spec.InternalError)
                if unable or isinstance(error, _LOST):
                    self._close()
                    if time.monotonic() > deadline:
                        raise SessionError(
                            f"no FLARE server answers {self.kit.name}, whose kit is {self.kit}, "
                            f"within {patience:.0f} s: {error}. Is it started, and reached from "
                            "here?"
                        ) from error
                    if opening:
                        if not waiting:
                            wait = f"waiting for up to {patience:.0f} s"
                            self.on_wait(f"the server does not answer; {wait}")
                        waiting = True
                        time.sleep(0.5)
                elif once:
                    raise
                else:
                    self._wait_or_refuse(error, next(before), deadline)

    def _wait_or_refuse(self, error: Exception, pause: float, deadline: float) -> None:
        """Wait where a server that could not do it may do it later."""
        asked = f"what {self.kit.name} asks: {error}"
        if isinstance(error, _UNABLE) and not _WRONG.match(str(error)):
            if time.monotonic() + pause > deadline:
                raise SessionError(f"the server cannot do {asked}") from error
            self.on_wait(f"the server cannot do {asked}; again in {pause:.0f} s")
            time.sleep(pause)
        elif type(error).__module__ == api_spec.__name__:
            raise SessionError(f"the server refuses {asked}") from error
        else:
            raise error

    def _open(self) -> Session:
        """A new session, where somebody listens."""
        config = json.loads((self.kit / "startup" / "fed_admin.json").read_text(encoding="utf-8"))
        admin = config["admin"]
        if reason := unreachable(admin["host"], int(admin["port"])):
            raise api_spec.NoConnection(reason)
        # A POC's admins are asked for by their certificates, not by a user name.
        session = Session(str(admin["username"]), str(self.kit), study=self.study)
        session.api.auto_login_max_tries = _LOGINS
        try:
            with redirect_stdout(StringIO()) as said, redirect_stderr(said):
                session.try_connect(5.0)
        except BaseException as error:
            # It would wait, for ever perhaps, for the connection that is being made.
            threading.Thread(target=_end, args=(session.api.close,), daemon=True).start()
            if isinstance(error, Exception) and (reason := distrust(self.kit, admin)):
                raise SessionError(reason) from error
            raise
        return session

    def _close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            _end(session.close)


def _end(close: Callable[[], None]) -> None:
    with suppress(Exception):  # a server that is gone cannot be told goodbye
        close()


def distrust(kit: Path, admin: Mapping[str, Any]) -> str | None:
    """Why a kit and the server that listens do not trust each other, by their certificates.

    Args:
        kit: Folder of the startup kit.
        admin: The kit's configuration of its admin: "host", "port" and names of files.

    Returns:
        What is wrong and what to do; None where the certificates are not the reason.
    """
    pems = [(kit / "startup" / admin[file]).read_text() for file in ("ca_cert", "client_cert")]
    with suppress(OSError):  # an SSLError is one: it is no TLS, or says nothing to a stranger
        pems.append(ssl.get_server_certificate((admin["host"], int(admin["port"])), timeout=5.0))
    root, *others = (x509.load_pem_x509_certificate(pem.encode()) for pem in pems)
    names = f"{admin['client_cert']} of kit {kit}", "the server's certificate"
    for whose, one in zip(names, others, strict=False):
        try:
            one.verify_directly_issued_by(root)
        except (InvalidSignature, ValueError, TypeError):
            return (
                f"kit {kit} was not made for this server: its root certificate, "
                f"{root.subject.rfc4514_string()!r} of {root.not_valid_before_utc:%Y-%m-%d}, has "
                f"not signed {whose}. Take the kit from the same provisioning as the server's."
            )
        if (end := one.not_valid_after_utc) < datetime.now(timezone.utc):
            return f"{whose} ended on {end:%Y-%m-%d}. Have it renewed by whoever provisions."
    return None
