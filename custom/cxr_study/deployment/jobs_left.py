"""What a run's jobs left at the server: models, and by them the rounds that are made."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cxr_study.finished_run import SERVER
from surgical_aggregation import lineage
from surgical_aggregation.checkpoint import load
from surgical_aggregation.persistor import LAST_FILE


@dataclass(frozen=True)
class Rounds:
    """How far a run is.

    Attributes:
        made: Rounds that its jobs have made, as far as known.
        planned: Rounds that they are to make; 0: not known.
    """

    made: int
    planned: int

    @classmethod
    def of(cls, model: Mapping[str, Any], jobs: Collection[str]) -> Rounds:
        """By the manifest of the last model of a run's jobs."""
        earlier = [past["rounds"][0] for past in model.get("history", []) if past["job"] in jobs]
        made = int(model["round"]) - min(earlier, default=lineage.first_round(model))
        return cls(made, made + lineage.missing_rounds(model))

    def __str__(self) -> str:
        return f"{self.made} of {self.planned or 'an unknown number of'} rounds"


def last_model(server: Path | None) -> Mapping[str, Any] | None:
    """Manifest of the last model that a job left.

    Args:
        server: The server's folder of the job; None: it is not at hand.

    Returns:
        None where it left none.
    """
    last = None if server is None else server / "models" / LAST_FILE
    return None if last is None or not last.is_file() else load(last).manifest


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
