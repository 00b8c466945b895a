"""A FLARE system on this machine: real services with certificates, in one folder."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from cxr_study import flare_log
from cxr_study.cache import cache_dir
from cxr_study.deployment import services
from cxr_study.deployment.flare_session import FlareSession, SessionError
from cxr_study.deployment.poc_project import PocError, PocProject
from cxr_study.deployment.ports import check_free, free_port, wait_for_listener
from cxr_study.deployment.site_kit import localise_server, localise_site
from surgical_aggregation.site_policy import NO_POLICY, SitePolicy

_PROJECT = "project.yml"
_WORKSPACE = "system"
_USERS_OWN = ("NVFLARE_STARTUP_KIT_DIR", "NVFL_WORKSPACE", "NVFLARE_HOME")
"""Variables by which FLARE would find something else than this folder."""


@dataclass(frozen=True)
class PocSystem:
    """A server and sites of FLARE's POC, with everything they write in one folder.

    Prepared with FLARE's own command, with a home folder of its own, for that command makes the
    POC the user's choice of system everywhere. Services are started by their kits' start.sh as
    FLARE does, but all at once (FLARE's command waits a second per site), after a look at the port
    (FLARE's tries in vain for half a minute and names no port), and none is left running if one
    cannot start. To stop, FLARE's command is asked where a job runs, so that it ends orderly. It
    fails where the server has crashed or lost its port, and returns before the watchdogs have
    ended, which then keep the system from starting; so whatever is left is ended here.

    Args:
        folder: Its folder; without spaces, for FLARE's start scripts.
    """

    folder: Path

    @property
    def project(self) -> PocProject:
        """Who takes part.

        Raises:
            PocError: It is not prepared.
        """
        if not (self._root / _PROJECT).is_file():
            raise PocError(
                f"{self.folder} holds no POC. Say surgagg poc prepare --folder {self.folder}"
            )
        return PocProject.read(self._root / _PROJECT)

    def kit(self, name: str) -> Path:
        """Startup kit of the server, a site or an admin; of a service also its workspace."""
        return self._kits(self.project) / name

    @property
    def lead(self) -> Path:
        """Startup kit of the admin who submits jobs."""
        return self.kit(self.project.lead)

    @property
    def server(self) -> Path:
        """Startup kit of the server, its workspace."""
        return self.kit(str(self.project.server["name"]))

    @property
    def places(self) -> dict[str, Path]:
        """Party -> its workspace; the server is called "server", as in a job."""
        return {"server": self.server, **{site: self.kit(site) for site in self.project.sites}}

    @property
    def site_files(self) -> Path | None:
        """Folder of the sites' <site>.yaml; None: the embedded phantom study's."""
        privacy = self.kit(self.project.sites[0]) / "local" / "privacy.json"
        scopes = json.loads(privacy.read_text(encoding="utf-8"))["scopes"]
        folder = scopes[0]["properties"].get("site_files")
        return None if folder is None else Path(folder)

    @property
    def running(self) -> bool:
        """Whether any process of it is left."""
        return bool(services.processes(self._root))

    def prepare(
        self,
        project: Path,
        *,
        sites: Sequence[str] | None = None,
        port: int | None = None,
        site_files: Path | None = None,
        policy: SitePolicy = NO_POLICY,
        encrypted: bool = False,
    ) -> None:
        """Make certificates and startup kits, with the local files that places of this study need.

        Args:
            project: FLARE's project file.
            sites: Names of the sites; None: the project's.
            port: For the server; None: a free one, so that several systems fit on a machine.
            site_files: Folder of <site>.yaml; None: the embedded phantom study's.
            policy: Of every site. Default: everything is as the job asks.
            encrypted: Whether kits get the keys of homomorphic encryption. Default False.

        Raises:
            PocError: The folder is not new, or has a space in its path; the port is taken; or the
                project file is unusable.
        """
        if self._root.exists():
            raise PocError(
                f"a POC needs a new folder; {self.folder} exists. Give another one, or say surgagg "
                f"poc clean --folder {self.folder}"
            )
        if any(letter.isspace() for letter in str(self._root)):
            raise PocError(
                f"FLARE's start scripts need a folder without spaces in its path; got "
                f"{str(self._root)!r}. Give another one."
            )
        if port is not None:
            check_free(port)
        wanted = PocProject.read(project).changed(
            port=port or free_port(), sites=sites, encrypted=encrypted
        )
        for folder in ("home", "tmp"):
            (self._root / folder).mkdir(parents=True)
        wanted.write(self._root / _PROJECT)
        try:
            self._flare("prepare", "-i", str(self._root / _PROJECT))
            if site_files is not None:
                policy = replace(policy, site_files=str(site_files))
            for site in wanted.sites:
                localise_site(self.kit(site), policy)
            localise_server(self.server, self._root / "storage", force=True)
        except BaseException:
            shutil.rmtree(self._root)
            raise

    def start(self, environment: Mapping[str, str] | None = None, *, timeout: float = 60.0) -> None:
        """Start server and sites, and wait until all sites are connected.

        Args:
            environment: Variables for them, beside those of this process. Default None: none.
            timeout: Seconds to wait.

        Raises:
            PocError: It is not prepared, or runs already; the port is taken; or a service does not
                come up. Then none is left running.
        """
        project = self.project
        if self.running:
            raise PocError(
                f"the POC in {self.folder} runs already. Say surgagg poc stop --folder "
                f"{self.folder} first."
            )
        check_free(project.port)
        kits = [self.server, *(self.kit(site) for site in project.sites)]
        try:
            for kit in kits:
                services.forget(kit)
                services.start(kit, {**self._environment(), **(environment or {})})
            self._wait(project, timeout)
        except BaseException:
            services.end(self._root)
            raise

    def stop(self) -> None:
        """End all its processes, whatever state they are in; a running job is aborted."""
        try:
            with suppress(PocError):
                found = services.processes(self._root)
                if services.runs(found, *services.JOB) and services.runs(found, *services.SERVER):
                    self._flare("stop", timeout=20.0)
        finally:  # also where another interrupt comes meanwhile
            services.end(self._root)

    def clean(self) -> None:
        """Stop it and remove its folder.

        Raises:
            PocError: The folder is no POC's.
        """
        _ = self.project  # anything else is not removed
        self.stop()
        shutil.rmtree(self._root)

    def _wait(self, project: PocProject, timeout: float) -> None:
        """Wait until all sites are connected."""
        deadline = time.monotonic() + timeout
        missing = {*project.sites}
        try:
            wait_for_listener(project.port, timeout)
            with FlareSession(self.lead, max(1.0, deadline - time.monotonic())) as session:
                while missing and time.monotonic() < deadline:
                    missing -= session.sites()
                    time.sleep(0.2)
        except (TimeoutError, SessionError):
            missing = {str(project.server["name"])}
        if missing:
            kit = self.kit(min(missing))
            errors = flare_log.last_errors(kit / services.CONSOLE)
            raise PocError(
                f"{', '.join(sorted(missing))} did not come up in {timeout:.0f} s. The log is "
                f"{kit / services.CONSOLE}, and ends with\n{errors}"
            )

    def _flare(self, *command: str, timeout: float = 60.0) -> None:
        """Run a `nvflare poc` command.

        Raises:
            PocError: It fails, or does not end in time.
        """
        try:
            done = subprocess.run(
                [sys.executable, "-m", "nvflare.cli", "poc", *command],
                cwd=self._root,
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=timeout,
                start_new_session=True,
            )
        except subprocess.TimeoutExpired as error:
            raise PocError(f"nvflare poc {command[0]} does not end in {timeout:.0f} s.") from error
        if done.returncode:
            said = (done.stderr or done.stdout).strip()
            raise PocError(f"nvflare poc {command[0]} failed: {said}")

    def _environment(self) -> dict[str, str]:
        """Variables of all its processes: this process's, but FLARE finds this folder alone."""
        own = {
            "HOME": str(self._root / "home"),
            "TMPDIR": str(self._root / "tmp"),  # FLARE leaves files there
            "NVFLARE_POC_WORKSPACE": str(self._root / _WORKSPACE),
            "SURGAGG_CACHE": str(cache_dir().absolute()),  # by default in the user's home
            # The kits' scripts say python3.
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]),
        }
        users = {name: value for name, value in os.environ.items() if name not in _USERS_OWN}
        return {**users, **own}

    def _kits(self, project: PocProject) -> Path:
        return self._root / _WORKSPACE / project.name / "prod_00"

    @property
    def _root(self) -> Path:
        return self.folder.resolve()
