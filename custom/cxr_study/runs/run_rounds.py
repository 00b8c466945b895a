"""Rounds that the jobs of a run have made and are to make, by the models that they left."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from surgical_aggregation.checkpoints.checkpoint import load
from surgical_aggregation.server.models.model_files import LAST_FILE


@dataclass(frozen=True)
class Rounds:
    """Rounds that a run's jobs have made, as far as known, and are to make; 0: not known."""

    made: int
    planned: int

    @property
    def all(self) -> bool:
        """Whether none is missing."""
        return self.made == self.planned

    def __str__(self) -> str:
        return f"{self.made} of {self.planned or 'an unknown number of'} rounds"


def left_a_model(server: Path) -> bool:
    """Whether a job left a model in the server's folder of it."""
    return (server / "models" / LAST_FILE).is_file()


def rounds_left(server: Path | None, jobs: Collection[str]) -> Rounds | None:
    """Rounds that the jobs of a run have made, by the last model that the last of them left.

    Rounds of a run that they continue do not count. None where there is no model, or the server's
    folder of that job is not at hand.
    """
    if server is None or not left_a_model(server):
        return None
    manifest = load(server / "models" / LAST_FILE).manifest
    earlier = [past["rounds"][0] for past in manifest.get("history", []) if past["job"] in jobs]
    made = int(manifest["round"]) - min(earlier, default=manifest.first_round)
    return Rounds(made, made + manifest.missing_rounds)
