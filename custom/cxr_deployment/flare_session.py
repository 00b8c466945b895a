"""A session with a FLARE server by an admin's startup kit: submit, monitor, abort, download jobs.

FLARE's own `Session` ends with its connection. `FlareSession` reconnects, and repeats a command
that the server could not execute.
"""

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

from cxr_deployment.processes import connection_error

_LOST = (
    api_spec.NoConnection, api_spec.SessionClosed, api_spec.SessionExpired, api_spec.NoReply,
    FLCommunicationError,
)  # fmt: skip
_LOGIN_REFUSED = (ConfigError, api_spec.AuthenticationError, api_spec.AuthorizationError)
_SERVER_FAULTS = (api_spec.InternalError, RuntimeError)
"""What FLARE raises here for an exception at the server, such as a full disk."""

_PERMANENT = re.compile("(syntax|protocol) error")
"""Start of the message of a server fault that would occur again at every attempt."""

PAUSES = (60.0, 120.0, 300.0)
"""Seconds before the second, third and fourth attempt; the last also before any further one."""

_REPEATS = (5.0, 15.0, *PAUSES)
"""The same between attempts of a command that failed at the server, maybe for a moment only."""

_LOGINS = 3
_CLOSING = 10.0
"""Seconds to wait until FLARE has closed a session."""

SILENT = 60.0
"""Seconds without a heartbeat after which a site counts as gone. Sites send one every 10."""

T = TypeVar("T")


def pauses(given: Sequence[float]) -> Iterator[float]:
    """Yield the pauses between attempts, seconds; the last one is repeated without end.

    Example:
        >>> list(itertools.islice(pauses([1.0, 5.0]), 4))
        [1.0, 5.0, 5.0, 5.0]
    """
    return itertools.chain(given, itertools.repeat(given[-1]))


class SessionError(ValueError):
    """The server is not reachable, or refuses this user or a command."""


@dataclass(eq=False)
class FlareSession:
    """An admin's session, as a context manager, which survives a restart of the server.

    A command that fails at the server, for instance because its disk is full, is repeated. One that
    the server refuses is not. Every method raises `SessionError` if the server refuses its command,
    or is not reachable for `patience` seconds.

    Args:
        kit: The admin's startup kit, the folder that holds startup/.
        timeout: Seconds to wait for the server when the session is opened. Default 60.
        patience: Seconds to wait later, when the server is not reachable or a command failed there.
            Default 60.
        on_wait: Called with a message whenever a wait begins. Default: no message.
        pauses: Seconds between attempts of a command that failed at the server. Default: 5 and 15,
            then `PAUSES`.
        study: FLARE's study to work in. Default "default", which every network has.

    Example:
        >>> with FlareSession(Path("kits/lead@org")) as session:  # doctest: +SKIP
        ...     job_id = session.submit(Path("my-job"))
    """

    kit: Path
    timeout: float = 60.0
    patience: float = 60.0
    on_wait: Callable[[str], None] = lambda text: None
    pauses: Sequence[float] = _REPEATS
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
        """Names of the connected sites.

        FLARE lists a site that died as connected for ten minutes. So a site is left out whose last
        heartbeat is `SILENT` seconds older than the newest one of any site.
        """
        seen = self.last_seen()
        newest = max(seen.values(), default=0.0)
        return {site for site, at in seen.items() if newest - at < SILENT}

    def missing(self, sites: Collection[str], patience: float = 0.0) -> list[str]:
        """Wait for sites to connect.

        Args:
            sites: Names of the sites.
            patience: Seconds to wait at most. Default 0: check once.

        Returns:
            Names of the sites that are not connected then, sorted.
        """
        deadline = time.monotonic() + patience
        while missing := sorted({*sites} - self.sites()):
            if time.monotonic() > deadline:
                break
            time.sleep(0.2)
        return missing

    def last_seen(self) -> dict[str, float]:
        """Site that FLARE lists as connected -> time of its last heartbeat, seconds since 1970."""
        clients = self._ask(Session.get_connected_client_list)
        return {client.name: client.last_connect_time for client in clients}

    def versions(self) -> dict[str, str]:
        """Party ("server" or a site) -> its FLARE version, or why that is not known.

        Kits that were made before the right to ask was granted refuse: `SessionError`.
        """
        reports = self._ask(lambda session: session.report_version("all"))
        return {party: " ".join(map(str, facts.values())) for party, facts in reports.items()}

    def server_started(self) -> float:
        """When the server started, seconds since 1970. Jobs that ran before are no longer run."""
        return float(self._ask(Session.get_system_info).server_info.start_time)

    def submit(self, job: Path) -> str:
        """Submit a job.

        Args:
            job: Its folder. A copy is submitted, because FLARE writes signatures into it.

        Returns:
            The job's id. If the server's reply is lost, the attempt that follows gets the same id.
        """
        with TemporaryDirectory() as temporary:
            copy = Path(temporary) / job.name
            shutil.copytree(job, copy)
            token = str(uuid4())
            return str(self._ask(lambda s: s.submit_job(str(copy), submit_token=token)))

    def meta(self, job_id: str) -> dict[str, Any]:
        """FLARE's metadata of a job.

        Among its keys are "job_id", "name", "status" (such as "SUBMITTED", "RUNNING",
        "FINISHED:COMPLETED"), "deploy_map", "schedule_history" and "job_deploy_detail".
        """
        return self._ask(lambda session: session.get_job_meta(job_id))

    def jobs(self) -> list[dict[str, Any]]:
        """FLARE's metadata of every job (see `meta`), oldest first."""
        return self._ask(lambda session: session.list_jobs(detailed=True))

    def running(self) -> list[str]:
        """Ids of the jobs that FLARE lists as running."""
        return [str(job["job_id"]) for job in self.jobs() if job["status"] == "RUNNING"]

    def stats(self, job_id: str) -> dict[str, dict[str, Any]]:
        """Statistics of a running job at the server: component -> what it reports.

        Empty if the job is not running, or does not answer. Each call is a message to the job's
        process at the server.
        """
        with suppress(api_spec.JobNotRunning, api_spec.JobNotFound, *_SERVER_FAULTS):
            answer = self._ask(lambda session: session.show_stats(job_id, "server"), once=True)
            if isinstance(answer, dict) and isinstance(stats := answer.get("server"), dict):
                return stats
        return {}

    def abort(self, job_id: str, patience: float = 3.0) -> str:
        """Abort a job, and wait until it has ended.

        The command is repeated, because FLARE ignores it for a job that is being started.

        Args:
            job_id: The job; nothing happens if it is not running.
            patience: Seconds to wait for the server, and until the job has ended. Default 3: a
                command that is interrupted ends soon.

        Returns:
            The job's status then; it starts with "FINISHED" if the job has ended.

        Raises:
            SessionError: The server could not abort it, or does not answer in that time.
        """
        deadline = time.monotonic() + patience
        while True:
            try:
                with suppress(api_spec.JobNotRunning, api_spec.JobNotFound):
                    self._ask(lambda session: session.abort_job(job_id), True, patience)
            except _SERVER_FAULTS as error:
                raise SessionError(f"the server could not abort it: {error}") from error
            meta = self._ask(lambda session: session.get_job_meta(job_id), patience=patience)
            status = str(meta["status"])
            if status.startswith("FINISHED") or time.monotonic() > deadline:
                return status
            time.sleep(0.5)

    def download(self, job_id: str, folder: Path) -> Path:
        """Download the result of a finished job.

        Args:
            job_id: The job.
            folder: Where it goes; an earlier download of the job there is replaced.

        Returns:
            The download, <folder>/<job id>: the job's folder is its `job`, the server's its
            `workspace`.
        """
        shutil.rmtree(folder / job_id, ignore_errors=True)  # FLARE would put the new one inside
        path = self._ask(lambda s: s.download_job_result(job_id, str(folder.absolute())))
        return Path(path)

    def _ask(
        self, command: Callable[[Session], T], once: bool = False, patience: float | None = None
    ) -> T:
        """Execute a command, and repeat it over a new connection if the present one is lost.

        Args:
            command: What to do with FLARE's session.
            once: Whether an error of the server is raised as it is. Default False: after a pause
                the command is repeated, or `SessionError` is raised if that cannot help.
            patience: Seconds to wait for the server. Default: the session's.
        """
        patience = self.patience if patience is None else patience
        deadline, before, waiting = time.monotonic() + patience, pauses(self.pauses), False
        while True:
            try:
                self._session = self._session or self._open()
                return command(self._session)
            except Exception as error:  # of many kinds: FLARE's share no base
                opening = self._session is None
                if opening and isinstance(error, _LOGIN_REFUSED):
                    refused = f"the server does not let {self.kit.name} in: {error}."
                    raise SessionError(refused) from error
                not_opened = opening and isinstance(error, api_spec.InternalError)
                if not_opened or isinstance(error, _LOST):
                    self._close()
                    if time.monotonic() > deadline:
                        raise SessionError(
                            f"no FLARE server answers {self.kit.name}, whose kit is {self.kit}, "
                            f"within {patience:g} s: {error}. Is it started, and reached from "
                            "here?"
                        ) from error
                    if opening:
                        if not waiting:
                            wait = f"waiting for up to {patience:g} s"
                            self.on_wait(f"the server does not answer; {wait}")
                        waiting = True
                        time.sleep(0.5)
                elif once:
                    raise
                else:
                    self._wait_or_refuse(error, next(before), deadline)

    def _wait_or_refuse(self, error: Exception, pause: float, deadline: float) -> None:
        """Pause before the next attempt if the server may succeed later; else raise."""
        asked = f"what {self.kit.name} asks: {error}"
        if isinstance(error, _SERVER_FAULTS) and not _PERMANENT.match(str(error)):
            if time.monotonic() + pause > deadline:
                raise SessionError(f"the server cannot do {asked}") from error
            self.on_wait(f"the server cannot do {asked}; next attempt in {pause:.0f} s")
            time.sleep(pause)
        elif type(error).__module__ == api_spec.__name__:
            raise SessionError(f"the server refuses {asked}") from error
        else:
            raise error

    def _open(self) -> Session:
        """Open FLARE's session, after a check that a server listens."""
        config = json.loads((self.kit / "startup" / "fed_admin.json").read_text(encoding="utf-8"))
        admin = config["admin"]
        if reason := connection_error(admin["host"], int(admin["port"])):
            raise api_spec.NoConnection(reason)
        # The certificate identifies the admin, also in a POC; FLARE ignores the user name.
        session = Session(str(admin["username"]), str(self.kit), study=self.study)
        session.api.auto_login_max_tries = _LOGINS
        try:
            with redirect_stdout(StringIO()) as output, redirect_stderr(output):
                session.try_connect(5.0)
        except BaseException as error:
            # In a thread: closing waits for the connection attempt, possibly without limit.
            threading.Thread(target=_close_quietly, args=(session.api.close,), daemon=True).start()
            if isinstance(error, Exception) and (reason := certificate_problem(self.kit, admin)):
                raise SessionError(reason) from error
            raise
        return session

    def _close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            # FLARE's close may wait without limit for a connection that is being made again.
            closing = threading.Thread(target=_close_quietly, args=(session.close,), daemon=True)
            closing.start()
            closing.join(_CLOSING)


def _close_quietly(close: Callable[[], None]) -> None:
    with suppress(Exception):  # closing sends a message, which fails if the server is gone
        close()


def certificate_problem(kit: Path, admin: Mapping[str, Any]) -> str | None:
    """Check the certificates of a kit and of the server that it connects to.

    Args:
        kit: Folder of the startup kit.
        admin: The admin's entry in its fed_admin.json: "host", "port", "ca_cert", "client_cert".

    Returns:
        What is wrong and what to do: a certificate that the kit's root has not signed, or one that
        has expired. None if the certificates are valid, as far as the server shows its own.
    """
    pems = [(kit / "startup" / admin[file]).read_text() for file in ("ca_cert", "client_cert")]
    # An SSLError is an OSError: no TLS, or the server shows its certificate to known clients only.
    with suppress(OSError):
        pems.append(ssl.get_server_certificate((admin["host"], int(admin["port"])), timeout=5.0))
    root, *others = (x509.load_pem_x509_certificate(pem.encode()) for pem in pems)
    names = f"{admin['client_cert']} of kit {kit}", "the server's certificate"
    for name, certificate in zip(names, others, strict=False):
        try:
            certificate.verify_directly_issued_by(root)
        except (InvalidSignature, ValueError, TypeError):
            return (
                f"kit {kit} was not made for this server: its root certificate, "
                f"{root.subject.rfc4514_string()!r} of {root.not_valid_before_utc:%Y-%m-%d}, has "
                f"not signed {name}. Take the kit from the same provisioning as the server's."
            )
        if (end := certificate.not_valid_after_utc) < datetime.now(timezone.utc):
            return f"{name} expired on {end:%Y-%m-%d}. Ask your project admin for a new one."
    return None
