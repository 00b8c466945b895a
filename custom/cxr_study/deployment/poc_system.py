"""A FLARE system on this machine: real services with certificates, in one folder."""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from cxr_study.deployment import poc_command, services
from cxr_study.deployment.flare_session import FlareSession, SessionError
from cxr_study.deployment.poc_folder import MARK, PocFolder
from cxr_study.deployment.poc_project import PocError, PocProject
from cxr_study.deployment.ports import check_free, free_port, wait_for_listener
from cxr_study.deployment.site_kit import localise_server, localise_site
from cxr_study.runs import flare_log
from surgical_aggregation.site.contract.site_policy import NO_POLICY, SitePolicy


@dataclass(frozen=True)
class PocSystem(PocFolder):
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

    @property
    def running(self) -> bool:
        """Whether any process of it is left."""
        return bool(services.processes(self.root))

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
            PocError: The folder is not new; or see `check`. Then nothing is left.
            PortError: See `check`.
        """
        if self.root.exists():
            raise PocError(
                f"a POC needs a new folder; {self.folder} exists. Give another one, or say surgagg "
                f"poc clean --folder {self.folder}"
            )
        self.check(project, port)
        wanted = PocProject.read(project).changed(
            port=port or free_port(), sites=sites, encrypted=encrypted
        )
        self.root.mkdir(parents=True)
        try:
            wanted.write(self.root / MARK)  # first: a half-made folder can be told from others
            poc_command.prepare(self.root, self.root / MARK)
            if site_files is not None:
                policy = replace(policy, site_files=str(site_files))
            for site in wanted.sites:
                localise_site(self.kit(site), policy)
            localise_server(self.server, self.root / "storage", force=True)
        except BaseException:
            shutil.rmtree(self.root)
            raise

    def check(self, project: Path, port: int | None = None) -> None:
        """Refuse what no POC could be made of in its folder, once what is there is removed.

        Args:
            project: FLARE's project file.
            port: For the server. That of the POC that runs from the folder now will be free.

        Raises:
            PocError: The folder has a space in its path, or the project file is unusable.
            PortError: The port is taken.
        """
        if any(letter.isspace() for letter in str(self.root)):
            raise PocError(
                f"FLARE's start scripts need a folder without spaces in its path; got "
                f"{str(self.root)!r}. Give another one."
            )
        PocProject.read(project)
        if port is not None and not self._holds(port):
            check_free(port)

    def start(self, environment: Mapping[str, str] | None = None, *, timeout: float = 60.0) -> None:
        """Start server and sites, and wait until all sites are connected.

        Args:
            environment: Variables for them, beside those of this process. Default None: none.
            timeout: Seconds to wait.

        Raises:
            PocError: It is not prepared, or runs already; or a service does not come up. Then none
                is left running.
            PortError: The port is taken.
        """
        project = self.project
        if self.running:
            raise PocError(
                f"the POC in {self.folder} runs already. Say surgagg deploy poc stop --folder "
                f"{self.folder} first."
            )
        check_free(project.port)
        kits = [self.server, *(self.kit(site) for site in project.sites)]
        try:
            for kit in kits:
                services.forget(kit)
                services.start(kit, {**poc_command.environment(self.root), **(environment or {})})
            self._wait(project, timeout)
        except BaseException:
            services.end(self.root)
            raise

    def stop(self) -> None:
        """End all its processes, whatever state they are in; a running job is aborted."""
        try:
            with suppress(PocError):
                found = services.processes(self.root)
                if services.runs(found, *services.JOB) and services.runs(found, *services.SERVER):
                    poc_command.stop(self.root)
        finally:  # also where another interrupt comes meanwhile
            services.end(self.root)

    def clean(self) -> None:
        """Stop it and remove its folder, also a half-made one.

        Raises:
            PocError: The folder is no POC's.
        """
        self.check_marked()  # anything else is not removed
        self.stop()
        shutil.rmtree(self.root)

    def _holds(self, port: int) -> bool:
        """Whether the port is that of its own server, which runs."""
        with suppress(PocError):
            return self.project.port == port and self.running
        return False

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
