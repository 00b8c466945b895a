"""What a run of a study trains, and what comes out of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cxr_study.jobs.command_line_settings import Settings
from cxr_study.jobs.methods import Row
from cxr_study.runs.method_job import Models, configure


@dataclass(frozen=True)
class Training:
    """What to train.

    Attributes:
        site_files: Folder of <site>.yaml.
        preset: See `PRESETS`; None: none.
        folder: For jobs, workspaces and models; an interrupted training goes on by what is there.
        last: Whether the last model is wanted, not the best.
    """

    row: Row
    sites: tuple[str, ...]
    union: tuple[str, ...]
    site_files: Path
    initial_body: Path
    preset: str | None
    settings: Settings
    folder: Path
    last: bool = False

    def configure(self, job: Path, **more: object) -> None:
        """Write the folder of the job, with some more settings."""
        settings = {**self.settings, **more}
        configure(
            self.row, job, sites=self.sites, union=self.union, settings=settings, preset=self.preset
        )


@dataclass(frozen=True)
class Trained:
    """What came out; for `rounds`, `losses` and `column_similarity` see `run_folder.Result`.

    Attributes:
        models: Site -> checkpoint of its best (or last) model, or of the global one.
    """

    models: Models
    rounds: int
    losses: tuple[float | None, ...]
    column_similarity: tuple[Mapping[str, float], ...] = ()
