"""A FLARE system (POC) on this machine, with certificates, in one folder, and its project file.

The project file lists server, sites and admins, and the server's port. The startup kits are made
from it.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from copy import deepcopy
from dataclasses import asdict, dataclass, replace
from io import StringIO
from pathlib import Path
from typing import Any

import yaml
from nvflare.lighter.constants import CtxKey, ProvisionMode
from nvflare.lighter.provision import prepare_builders, prepare_project
from nvflare.lighter.provisioner import Provisioner

from cxr_deployment import processes
from cxr_deployment.flare_session import FlareSession, SessionError
from cxr_deployment.processes import check_free, free_port
from cxr_deployment.site_kit import localise_server, localise_site, scope_properties
from cxr_study.common.files import cache_dir
from cxr_study.common.offered_data import DRAWINGS, PHANTOM
from cxr_study.runs.run_failure import tail
from surgical_aggregation.site.contract.site_policy import NO_POLICY

MARK = "surgagg_poc.yml"
"""In a POC's folder: its project file. It is written first, and identifies the folder as a POC."""

_KITS = "system"
_ABORTING = 60.0
"""Seconds that running jobs have to end when the system is stopped."""

_FLARE_VARIABLES = ("NVFLARE_STARTUP_KIT_DIR", "NVFL_WORKSPACE", "NVFLARE_HOME")
"""The user's environment variables that would direct FLARE to a folder other than the POC's."""

_ENCRYPTION = "nvflare.lighter.impl.he.HEBuilder"


class PocError(ValueError):
    """A POC cannot be prepared, started or used; the message states what to do."""


@dataclass
class PocProject:
    """A POC's project file.

    Attributes:
        content: The parsed file.
        name: The project's name.
        server: The server's entry.
        port: The port that the server listens on.
        sites: Names of the sites.
        lead: Name of the first admin with the role lead, who submits jobs.
        project_admin: Name of the first project admin, who may abort all jobs.
    """

    content: dict[str, Any]

    def __post_init__(self) -> None:
        self.name = str(self.content["name"])
        self.server = next(iter(self._participants("server")))
        self.port = int(self.server["fed_learn_port"])
        self.sites = tuple(str(client["name"]) for client in self._participants("client"))
        admins = {p["role"]: str(p["name"]) for p in reversed(self._participants("admin"))}
        self.lead, self.project_admin = admins["lead"], admins["project_admin"]

    @classmethod
    def read(cls, path: Path) -> PocProject:
        """Parse a project file.

        Raises:
            PocError: The file does not exist, or is not a project file with a server, a site, a
                project_admin and a lead.
        """
        try:
            project = cls(yaml.safe_load(path.read_text(encoding="utf-8")))
        except FileNotFoundError:
            raise PocError(
                f"{path} does not exist; a POC needs FLARE's project file. Run from the project's "
                "root, or give --project one, such as `nvflare provision -g` makes."
            ) from None
        except (
            yaml.YAMLError, RecursionError, ValueError, LookupError, AttributeError, TypeError,
            StopIteration,
        ) as error:  # fmt: skip
            raise PocError(
                f"{path} is no project file of FLARE with a server, a project_admin and a lead: "
                f"{error!r}."
            ) from error
        if not project.sites:
            raise PocError(f"{path} names no sites; a POC needs one at least.")
        return project

    def write(self, path: Path) -> None:
        """Write it as a project file."""
        text = yaml.safe_dump(self.content, sort_keys=False, allow_unicode=True)
        path.write_text(text, encoding="utf-8")

    def provision(self, folder: Path) -> None:
        """Make certificates and startup kits, in <folder>/<name>/prod_00, as `nvflare poc` does.

        `nvflare poc` itself is not used: it also changes the user's FLARE configuration.

        Args:
            folder: Where FLARE writes them.

        Raises:
            PocError: FLARE reports an error.
        """
        content = deepcopy(self.content)  # FLARE changes it
        with redirect_stdout(StringIO()) as output, redirect_stderr(output):
            try:
                provisioner = Provisioner(str(folder), prepare_builders(content))
                done = provisioner.provision(prepare_project(content), ProvisionMode.POC)
                failed = bool(done.get(CtxKey.BUILD_ERROR))
            except Exception as error:  # of many kinds: FLARE's share no base
                raise PocError(f"FLARE makes no startup kits of this project: {error}") from error
        if failed:
            raise PocError(f"FLARE made no startup kits: {output.getvalue().strip()}")

    def _participants(self, *types: str) -> list[dict[str, Any]]:
        return [p for p in self.content["participants"] if p["type"] in types]

    def changed(
        self, *, port: int, sites: Sequence[str] | None = None, encrypted: bool = False
    ) -> PocProject:
        """Copy the project with another port and other sites.

        Args:
            port: Port for the server, at localhost.
            sites: Names of the sites. Default None: the project's. A site that the project does not
                list is a copy of its first site, in a separate organisation.
            encrypted: Whether the kits get the keys of homomorphic encryption. Default False.

        Raises:
            PocError: The project has relays, which a POC does not start.
        """
        if relays := [relay["name"] for relay in self._participants("relay")]:
            raise PocError(
                f"a POC has no relays; the project has {', '.join(relays)}. Take them out, and the "
                "connect_to of their sites, or provision by `nvflare provision` "
                "(docs/how-to/deploy.md)."
            )
        known = {client["name"]: client for client in self._participants("client")}
        like = next(iter(known.values()))
        clients = [
            known.get(site, {**like, "name": site, "org": re.sub(r"\W", "_", site)})
            for site in sites or known
        ]
        server = {**self.server, "fed_learn_port": port, "default_host": "localhost"}
        server.pop("admin_port", None)  # FLARE then uses the one port for both
        changed = {**self.content, "participants": [server, *clients, *self._participants("admin")]}
        if encrypted:
            *before, signatures = self.content["builders"]
            changed["builders"] = [*before, {"path": _ENCRYPTION, "args": {}}, signatures]
        return PocProject(changed)


@dataclass(frozen=True)
class PocSystem:
    """A POC: FLARE's server and sites on this machine, with all of their files in one folder.

    Services are started by their kits' start.sh, as `nvflare poc` does, with these differences. All
    start at once; FLARE's command waits a second per site. The port is checked first; FLARE's
    command retries for half a minute and does not name the port. If one service cannot start, all
    are stopped. To stop, running jobs are aborted, then all remaining processes are ended; FLARE's
    command fails if the server has crashed, and returns before the watchdogs have ended.

    Args:
        folder: The POC's folder; FLARE's start scripts need a path without spaces.

    Example:
        >>> poc = PocSystem(Path("poc-folder"))  # doctest: +SKIP
        >>> poc.prepare(Path("poc/project.yml"))  # doctest: +SKIP
        >>> poc.start()  # doctest: +SKIP
    """

    folder: Path

    @property
    def root(self) -> Path:
        """The folder's absolute path, as in the command lines of the POC's processes."""
        return self.folder.resolve()

    @property
    def project(self) -> PocProject:
        """The project file, once the POC is prepared.

        Raises:
            PocError: The folder holds no POC.
        """
        self._check_marked()
        return PocProject.read(self.root / MARK)

    def __str__(self) -> str:
        return f"server and {', '.join(self.project.sites)}, port {self.project.port}"

    def _check_marked(self) -> None:
        """Raise `PocError` unless the folder is a POC's, complete or not."""
        if not (self.root / MARK).is_file():
            raise PocError(
                f"{self.folder} holds no POC. Run surgagg deploy poc prepare --folder {self.folder}"
            )

    def kit(self, name: str) -> Path:
        """Startup kit of the server, a site or an admin, by its name in the project file.

        The kit of a service is also its workspace.
        """
        return self.root / _KITS / self.project.name / "prod_00" / name

    @property
    def lead(self) -> Path:
        """Startup kit of the admin who submits jobs."""
        return self.kit(self.project.lead)

    @property
    def server(self) -> Path:
        """Startup kit of the server, which is also its workspace."""
        return self.kit(str(self.project.server["name"]))

    @property
    def workspaces(self) -> dict[str, Path]:
        """Party -> its workspace; the server is called "server", as in a job."""
        return {"server": self.server, **{site: self.kit(site) for site in self.project.sites}}

    @property
    def site_files(self) -> Path | None:
        """Folder of the sites' <site>.yaml; None: the phantom."""
        folder = scope_properties(self.kit(self.project.sites[0]))["site_files"]
        return None if folder == PHANTOM else Path(folder)

    @property
    def environment(self) -> dict[str, str]:
        """Environment variables of the services: this process's, with FLARE's set to the folder."""
        own = {
            "HOME": str(self.root / "home"),
            "TMPDIR": str(self.root / "tmp"),  # FLARE leaves files there
            "NVFLARE_POC_WORKSPACE": str(self.root / _KITS),
            "SURGAGG_CACHE": str(cache_dir().absolute()),  # by default in the user's home
            # The kits' scripts call python3.
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]),
        }
        users = {name: value for name, value in os.environ.items() if name not in _FLARE_VARIABLES}
        return {**users, **own}

    @property
    def running(self) -> bool:
        """Whether any process of the POC is running."""
        return bool(processes.find_processes(self.root))

    def prepare(
        self,
        project: Path,
        *,
        sites: Sequence[str] | None = None,
        port: int | None = None,
        site_files: Path | None = None,
        encrypted: bool = False,
    ) -> None:
        """Make certificates and startup kits, with their local files.

        Args:
            project: FLARE's project file.
            sites: Names of the sites. Default None: the project's.
            port: For the server. Default None: a free one, so that several POCs fit on a machine.
            site_files: Folder of <site>.yaml. Default None: the phantom.
            encrypted: Whether the kits get the keys of homomorphic encryption. Default False.

        Raises:
            PocError: The folder exists, or see `check`. After any error no folder remains.
            PortError: The port is taken.
        """
        if self.root.exists():
            raise PocError(
                f"a POC needs a new folder; {self.folder} exists. Give another one, or run surgagg "
                f"deploy poc clean --folder {self.folder}"
            )
        self.check(project, port)
        wanted = PocProject.read(project).changed(
            port=port or free_port(), sites=sites, encrypted=encrypted
        )
        self.root.mkdir(mode=0o700, parents=True)  # private keys: an admin may bring code
        try:
            wanted.write(self.root / MARK)  # first: it identifies an incomplete folder as a POC
            for name in ("home", "tmp"):
                (self.root / name).mkdir()
            wanted.provision(self.root / _KITS)
            policy = replace(NO_POLICY, site_files=str(site_files or PHANTOM))
            for site in wanted.sites:
                localise_site(self.kit(site), asdict(policy), byoc="anyone")
            localise_server(self.server, self.root / "storage", byoc="anyone")
        except BaseException:
            shutil.rmtree(self.root)
            raise

    def check(self, project: Path, port: int | None = None) -> None:
        """Check that `prepare` would succeed after an earlier POC in the folder is removed.

        A port that this POC uses now counts as free.

        Args:
            project: FLARE's project file.
            port: For the server. Default None: not checked.

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
        own = False
        with suppress(PocError):
            own = self.project.port == port and self.running
        if port is not None and not own:
            check_free(port)

    def start(
        self, environment: Mapping[str, str] | None = None, *, timeout: float = 120.0
    ) -> None:
        """Start server and sites, and wait until all sites are connected.

        Args:
            environment: Variables for the services, in addition to those of `environment`.
            timeout: Seconds to wait for the server, and again for the sites. Default 120.

        Raises:
            PocError: The POC is not prepared, is running already, or a service did not start. In
                the last case all services are stopped.
            PortError: The port is taken.
        """
        project = self.project
        if self.running:
            raise PocError(
                f"the POC in {self.folder} is running already. Run surgagg deploy poc stop "
                f"--folder {self.folder} first."
            )
        check_free(project.port)
        variables = {**self.environment, **(environment or {})}
        if self.site_files is None:
            variables.setdefault("CXR_INITIAL_BODY", DRAWINGS)
        try:
            for kit in self.workspaces.values():
                processes.start(kit, variables)
            self._wait(project, timeout)
        except BaseException:
            processes.terminate(self.root)
            raise

    def stop(self) -> None:
        """Abort running jobs, and end all processes of the POC, in whatever state they are."""
        try:
            with suppress(PocError, SessionError):
                found = processes.find_processes(self.root)
                if all(processes.any_runs(found, *m) for m in (processes.JOB, processes.SERVER)):
                    admin = self.kit(self.project.project_admin)
                    with FlareSession(admin, _ABORTING, _ABORTING) as session:
                        for job_id in session.running():
                            session.abort(job_id, _ABORTING)
        finally:  # also after another interrupt meanwhile
            processes.terminate(self.root)

    def clean(self) -> None:
        """Stop the POC and delete its folder, complete or not.

        Raises:
            PocError: The folder is not a POC's; it is not deleted.
        """
        self._check_marked()
        self.stop()
        shutil.rmtree(self.root)

    def _wait(self, project: PocProject, timeout: float) -> None:
        """Wait until all sites are connected."""
        try:
            with FlareSession(self.lead, timeout) as session:
                missing = session.missing(project.sites, timeout)
        except SessionError:
            missing = [str(project.server["name"])]
        if missing:
            console = self.kit(missing[0]) / processes.CONSOLE
            raise PocError(
                f"{', '.join(missing)} did not come up in {timeout:.0f} s. The log is "
                f"{console}, and ends with\n{tail(console)}"
            )
