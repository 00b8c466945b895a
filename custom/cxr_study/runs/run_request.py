"""A run of a job in FLARE's simulator as it is asked for; see `simulated_run`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from cxr_study.jobs.job_settings import Settings
from cxr_study.runs.simulator_folders import checkpoint_folder


@dataclass(frozen=True)
class Earlier:
    """A run that another one continues.

    Attributes:
        folder: Its folder.
        model: Its model to start from. From the last one the sites go on with the state that they
            had; with the best one they start theirs afresh.
    """

    folder: Path
    model: Literal["last", "best"] = "last"


@dataclass(frozen=True)
class StudyRun:
    """A run of a job in FLARE's simulator.

    Attributes:
        job: Job folder.
        folder: New folder for everything the run makes.
        sites: Names of the sites.
        site_files: Folder of <site>.yaml; None: the embedded phantom study.
        initial_body: Checkpoint to start from; None: the embedded study's.
        settings: Knob -> value, beside the job's own.
        per_site: Site -> knob -> value, at that site alone.
        earlier: The run that this one continues, from its model instead of `initial_body`; None: a
            fresh run.
    """

    job: Path
    folder: Path
    sites: tuple[str, ...]
    site_files: Path | None
    initial_body: Path | None
    settings: Settings
    per_site: Mapping[str, Settings] = field(default_factory=dict)
    earlier: Earlier | None = None

    @property
    def workspace(self) -> Path:
        """FLARE's workspace of the federated run."""
        return self.folder / "workspace"

    def own_workspace(self, site: str) -> Path:
        """FLARE's workspace of the run of one site alone."""
        return self.folder / "own" / site

    def start(self, workspace: Path) -> Path | None:
        """Checkpoint that the run in a workspace starts from; None: the embedded study's."""
        if self.earlier is None:
            return self.initial_body
        return checkpoint_folder(self._before(workspace)) / f"{self.earlier.model}.npz"

    def states(self, workspace: Path, sites: Sequence[str]) -> dict[str, Path]:
        """Site -> folder of its state, for the sites that go on with one in a workspace."""
        if self.earlier is None or self.earlier.model == "best":
            return {}
        from surgical_aggregation.site.site_state import has_state  # needs FLARE

        before = {site: checkpoint_folder(self._before(workspace), site) for site in sites}
        return {site: folder for site, folder in before.items() if has_state(folder)}

    def environment(self, workspace: Path) -> dict[str, str]:
        """Variables that tell the job in a workspace where sites and initial body are."""
        values = {"CXR_SITES": self.site_files, "CXR_INITIAL_BODY": self.start(workspace)}
        return {name: str(path.absolute()) for name, path in values.items() if path is not None}

    def _before(self, workspace: Path) -> Path:
        """The earlier run's workspace of the same name."""
        folder = self.folder if self.earlier is None else self.earlier.folder
        return folder / workspace.relative_to(self.folder)
