"""The project file of a POC: who takes part, on which port, and the startup kits made of it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from copy import deepcopy
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

PROJECT = Path("poc/project.yml")
"""This project's own, from its root."""

_ENCRYPTION = "nvflare.lighter.impl.he.HEBuilder"


class PocError(ValueError):
    """A POC cannot be prepared, started or used as wanted; the message says what to do."""


@dataclass
class PocProject:
    """What a POC's project file says.

    Attributes:
        content: The parsed file.
        name: The project's.
        server: The server's entry, and the `port` that it listens on.
        sites: Names of the sites.
        lead: Name of the first lead, who submits jobs.
        project_admin: Name of the admin who may stop anything.
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
            PocError: It is none.
        """
        import yaml  # those who only need `PROJECT` need none

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
        import yaml

        text = yaml.safe_dump(self.content, sort_keys=False, allow_unicode=True)
        path.write_text(text, encoding="utf-8")

    def provision(self, folder: Path) -> None:
        """Make certificates and startup kits, in <folder>/<name>/prod_00, as `nvflare poc` does.

        That command would also make the POC the user's choice of system everywhere.

        Raises:
            PocError: FLARE refuses.
        """
        from nvflare.lighter.constants import CtxKey, ProvisionMode
        from nvflare.lighter.provision import prepare_builders, prepare_project
        from nvflare.lighter.provisioner import Provisioner

        content = deepcopy(self.content)  # FLARE changes it
        with redirect_stdout(StringIO()) as said, redirect_stderr(said):
            try:
                provisioner = Provisioner(str(folder), prepare_builders(content))
                done = provisioner.provision(prepare_project(content), ProvisionMode.POC)
                failed = bool(done.get(CtxKey.BUILD_ERROR))
            except Exception as error:  # of many kinds: FLARE's share no base
                raise PocError(f"FLARE makes no startup kits of this project: {error}") from error
        if failed:
            raise PocError(f"FLARE made no startup kits: {said.getvalue().strip()}")

    def _participants(self, *types: str) -> list[dict[str, Any]]:
        return [p for p in self.content["participants"] if p["type"] in types]

    def changed(
        self, *, port: int, sites: Sequence[str] | None = None, encrypted: bool = False
    ) -> PocProject:
        """The same project on another port, and with other sites.

        Args:
            port: Port for the server, at localhost.
            sites: Names; None: the project's. One that the project does not have is set up like
                its first, in an organisation of its own.
            encrypted: Whether the kits get the keys of homomorphic encryption. Default False.

        Raises:
            PocError: It has relays.
        """
        if relays := [relay["name"] for relay in self._participants("relay")]:
            raise PocError(
                f"a POC has no relays; the project has {', '.join(relays)}. Take them out, and the "
                "connect_to of their sites, or provision by `nvflare provision` (poc/README.md)."
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
