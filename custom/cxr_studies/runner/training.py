"""What a run of a study trains, and what comes out of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from cxr_studies.plan import method_job
from cxr_studies.plan.method_job import Models, job_of
from cxr_studies.plan.row import Row
from cxr_study.jobs.job import Job
from cxr_study.jobs.presets import Settings
from cxr_study.runs import job_results
from cxr_study.runs.job_results import METRICS, json_lines, read_events


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

    def job(self, **more: object) -> Job:
        """The job, with some more settings."""
        return job_of(
            self.row,
            sites=self.sites,
            union=self.union,
            settings={**self.settings, **more},
            preset=self.preset,
        )


@dataclass(frozen=True)
class Trained:
    """What came out; for all but `models` see `run_folder.Result`.

    Attributes:
        models: Site -> checkpoint of its best (or last) model, or of the global one.
    """

    models: Models
    rounds: int
    losses: tuple[float | None, ...]
    aurocs: tuple[float | None, ...]
    images: int
    column_similarity: tuple[Mapping[str, float], ...] = ()


def federated(row: Row, models: Models, rounds: int, servers: Sequence[Path]) -> Trained:
    """What came out of a federation, by the server's folders of its jobs, oldest first."""
    measured = job_results.rounds(*servers, personal=method_job.is_personal(row))
    sites = [[site.validation_auroc for site in each.sites.values()] for each in measured]
    return Trained(
        models,
        rounds,
        losses=tuple(each.mean_validation_bce for each in measured),
        aurocs=tuple(map(mean, sites)),
        # The last of the jobs may have made no round, only what comes after them.
        images=next(filter(None, map(_images, reversed(servers))), 0),
        column_similarity=_similarities(servers),
    )


def mean(values: Sequence[float | None]) -> float | None:
    """None where a value is missing, or all are."""
    known = [value for value in values if value is not None]
    return fmean(known) if known and len(known) == len(values) else None


def _images(server: Path) -> int:
    """Training images that the sites of a job together went through in its last round."""
    lines = json_lines(server / METRICS)
    return sum(site["weight"] for site in lines[-1]["sites"]) if lines else 0


def _similarities(servers: Sequence[Path]) -> tuple[Mapping[str, float], ...]:
    """Of each round; one that was made again is the later part's."""
    events: dict[int, dict[str, Any]] = {}
    for server in servers:
        events.update((e["round"], e) for e in read_events(server) if e["event"] == "round")
    return tuple(events[number]["column_similarity"] for number in sorted(events))
