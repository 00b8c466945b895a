"""What is where in the folder of a POC."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from cxr_study.deployment import poc_command
from cxr_study.deployment.poc_project import PocError, PocProject

MARK = "surgagg_poc.yml"
"""In a POC's folder: its project file, the first that is written and what tells it from others."""


@dataclass(frozen=True)
class PocFolder:
    """A folder that holds all of a POC: project file, kits, and whatever the services write.

    Args:
        folder: Its path.
    """

    folder: Path

    @property
    def root(self) -> Path:
        """Its absolute path, as in the command lines of its processes."""
        return self.folder.resolve()

    @property
    def project(self) -> PocProject:
        """Who takes part.

        Raises:
            PocError: It is not prepared.
        """
        self.check_marked()
        return PocProject.read(self.root / MARK)

    def check_marked(self) -> None:
        """Make sure that it is a POC's, be it a half-made one.

        Raises:
            PocError: It is not.
        """
        if not (self.root / MARK).is_file():
            raise PocError(
                f"{self.folder} holds no POC. Say surgagg deploy poc prepare --folder {self.folder}"
            )

    def kit(self, name: str) -> Path:
        """Startup kit of the server, a site or an admin; of a service also its workspace."""
        return poc_command.kits(self.root, self.project.name) / name

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
