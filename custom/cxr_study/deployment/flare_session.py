"""A session with a FLARE server through an admin's startup kit: submit, progress, download."""

from __future__ import annotations

import json
import logging
import shutil
import time
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout, suppress
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar
from uuid import uuid4

from nvflare.apis.fl_exception import FLCommunicationError
from nvflare.apis.job_def import DEFAULT_STUDY
from nvflare.fuel.common.excepts import ConfigError
from nvflare.fuel.flare_api import api_spec
from nvflare.fuel.flare_api.flare_api import Session, new_secure_session

from cxr_study.deployment.kit_trust import distrust
from cxr_study.deployment.processes import unreachable

_LOST = (
    api_spec.NoConnection, api_spec.SessionClosed, api_spec.SessionExpired, api_spec.NoReply,
    FLCommunicationError,
)  # fmt: skip

T = TypeVar("T")


class SessionError(ValueError):
    """The server cannot be reached, or refuses this user or what it was asked."""


class FlareSession:
    """A session of an admin, which outlives a restart of the server; for a `with` block.

    Args:
        kit: The admin's startup kit, the folder that holds startup/.
        timeout: Seconds to wait for the server at first. Default 60.
        patience: Seconds to wait for it whenever it is gone later. Default 60.
        on_wait: Called with these seconds when the server does not answer and is waited for.
            Default: nothing is.
        study: FLARE's study that it works in. Default "default", which every network has.
    """

    def __init__(
        self,
        kit: Path,
        timeout: float = 60.0,
        patience: float = 60.0,
        on_wait: Callable[[float], None] = lambda seconds: None,
        study: str = DEFAULT_STUDY,
    ):
        self.kit = kit
        self.timeout = timeout
        self.patience = patience
        self.on_wait = on_wait
        self.study = study
        self._session: Session | None = None

    def __enter__(self) -> FlareSession:
        if not (self.kit / "startup" / "fed_admin.json").is_file():
            raise SessionError(
                f"an admin's startup kit is needed; {self.kit} holds no startup/fed_admin.json. "
                "Give the folder that your project admin sent you."
            )
        # FLARE's loggers would write to the terminal where nothing else is set up.
        logging.getLogger("nvflare").addHandler(logging.NullHandler())
        self._connected(self.timeout, time.monotonic() + self.timeout)
        return self

    def __exit__(self, *error: object) -> None:
        self._close()

    def sites(self) -> set[str]:
        """Names of the sites that are connected."""
        return {client.name for client in self._ask(Session.get_connected_client_list)}

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

    def running(self) -> list[str]:
        """Ids of the jobs that FLARE says are running."""
        jobs = self._ask(lambda session: session.list_jobs())
        return [str(job["job_id"]) for job in jobs if job["status"] == "RUNNING"]

    def stats(self, job_id: str) -> dict[str, dict[str, Any]]:
        """What the components of a running job at the server report, by name."""
        with suppress(api_spec.JobNotRunning, api_spec.JobNotFound, api_spec.InternalError):
            answer = self._ask(lambda session: session.show_stats(job_id, "server"), refuse=False)
            stats = answer.get("server") if isinstance(answer, dict) else None
            return stats if isinstance(stats, dict) else {}
        return {}

    def abort(self, job_id: str) -> None:
        """Abort a job; one that does not run any more is left alone."""
        with suppress(api_spec.JobNotRunning, api_spec.JobNotFound):
            self._ask(lambda session: session.abort_job(job_id), refuse=False)

    def download(self, job_id: str, folder: Path) -> Path:
        """Download a finished job's result; its folder, <folder>/<job id>."""
        shutil.rmtree(folder / job_id, ignore_errors=True)  # FLARE would put it inside
        at = self._ask(lambda session: session.download_job_result(job_id, str(folder.absolute())))
        return Path(at)

    def _ask(self, command: Callable[[Session], T], *, refuse: bool = True) -> T:
        """Give a command, again over a new connection where the present one is lost."""
        deadline = time.monotonic() + self.patience
        while True:
            try:
                return command(self._connected(self.patience, deadline))
            except _LOST as error:
                self._close()
                if time.monotonic() > deadline:
                    raise SessionError(
                        f"the server does not answer {self.kit.name}: {error}"
                    ) from error
            except Exception as error:  # of many kinds: FLARE's share no base
                if refuse and type(error).__module__ == api_spec.__name__:
                    raise SessionError(
                        f"the server refuses what {self.kit.name} asks: {error}"
                    ) from error
                raise

    def _open(self) -> Session:
        """A new session, where somebody listens.

        FLARE waits for ever when it gives up a session while its connection is being made, which
        happens where a server comes up late.
        """
        config = json.loads((self.kit / "startup" / "fed_admin.json").read_text(encoding="utf-8"))
        admin = config["admin"]
        if reason := unreachable(admin["host"], int(admin["port"])):
            raise api_spec.NoConnection(reason)
        try:
            with redirect_stdout(StringIO()) as said, redirect_stderr(said):
                # A POC's admins are asked for by their certificates, not by a user name.
                return new_secure_session(
                    str(admin["username"]), str(self.kit), timeout=5.0, study=self.study
                )
        except Exception as error:  # of many kinds
            if reason := distrust(self.kit, admin):
                raise SessionError(reason) from error
            raise

    def _connected(self, patience: float, deadline: float) -> Session:
        """The open session, or a new one; `patience` is the time until the deadline."""
        waiting = False
        while self._session is None:
            try:
                self._session = self._open()
            except _LOST as error:
                if time.monotonic() > deadline:
                    raise SessionError(
                        f"no FLARE server answers {self.kit.name}, whose kit is {self.kit}, within "
                        f"{patience:.0f} s: {error}. Is it started, and reached from here?"
                    ) from error
                if not waiting:
                    self.on_wait(patience)
                    waiting = True
                time.sleep(0.5)
            except (
                ConfigError, api_spec.AuthenticationError, api_spec.AuthorizationError,
            ) as error:  # fmt: skip
                raise SessionError(
                    f"the server does not let {self.kit.name} in: {error}."
                ) from error
        return self._session

    def _close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            with suppress(Exception):  # a server that is gone cannot be told goodbye
                session.close()
