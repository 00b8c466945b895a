"""What a run's jobs left at the server: models, and by them the rounds that are made."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from cxr_study.runs.finished_run import SERVER
from surgical_aggregation.checkpoints import continuation
from surgical_aggregation.checkpoints.checkpoint import load
from surgical_aggregation.server.models.model_files import LAST_FILE


@dataclass(frozen=True)
class Rounds:
    """How far a run is.

    Attributes:
        made: Rounds that its jobs have made, as far as known.
        planned: Rounds that they are to make; 0: not known.
    """

    made: int
    planned: int

    @property
    def all(self) -> bool:
        """Whether none is missing."""
        return self.made == self.planned

    def __str__(self) -> str:
        return f"{self.made} of {self.planned or 'an unknown number of'} rounds"


def rounds_left(server: Path | None, jobs: Collection[str]) -> Rounds | None:
    """Rounds that the jobs of a run have made, by the last model that the last of them left.

    Args:
        server: The server's folder of that job; None: it is not at hand.
        jobs: Ids of the run's jobs. Of a run that they go on from, rounds do not count.

    Returns:
        None where there is no model.
    """
    last = None if server is None else server / "models" / LAST_FILE
    if last is None or not last.is_file():
        return None
    manifest = load(last).manifest
    earlier = [past["rounds"][0] for past in manifest.get("history", []) if past["job"] in jobs]
    made = int(manifest["round"]) - min(earlier, default=continuation.first_round(manifest))
    return Rounds(made, made + continuation.missing_rounds(manifest))


def copied(places: Mapping[str, Path], job_id: str, folder: Path) -> Path | None:
    """Copy the server's folder of a job that FLARE takes to be running, and gives nothing away of.

    Args:
        places: Party -> its workspace, where they are at hand.
        job_id: The job's id.
        folder: Folder for the copy, which is laid out as a download.

    Returns:
        The copy; None where the server's workspace is not at hand, or the job had not begun.
    """
    left = places["server"] / job_id if "server" in places else None
    if left is None or not left.is_dir():
        return None
    target = folder / job_id / SERVER
    # Files that come and go while its process ends are not needed.
    shutil.copytree(left, target, ignore=shutil.ignore_patterns(".*", "*.tmp"))
    return target
