"""A federated run of a study in FLARE's simulator, which goes on where it was interrupted."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from cxr_studies.plan import method_job
from cxr_studies.runner.training import Trained, Training, federated
from cxr_studies.runner.training_process import Tell
from cxr_study.jobs import job_export
from cxr_study.runs.finished_run import checkpoint_folder, server_folder
from cxr_study.runs.simulator_process import LostSiteError, simulate
from surgical_aggregation.checkpoints.checkpoint import load
from surgical_aggregation.server.models.model_files import LAST_FILE
from surgical_aggregation.site.site_memory import has_state

_ATTEMPTS = 3
"""A run that lost a site's process, to a full memory say, goes on from its last round."""


def train(training: Training, tell: Tell) -> Trained:
    """Train to the end, from where an interruption has left it.

    Raises:
        SimulationError: The job failed.
        ValueError: A setting, a site file or the initial body is unusable.
    """
    parts = _parts(training)
    for attempt in range(_ATTEMPTS):
        number = len(parts)
        # What is there has left no model to go on from.
        shutil.rmtree(_part(training, number), ignore_errors=True)
        try:
            _simulate(training, number, parts, tell)
        except LostSiteError:
            if attempt + 1 == _ATTEMPTS:
                raise
            parts = _parts(training)
        else:
            break
    last = _part(training, number)
    return federated(
        training.row,
        method_job.models(training.row, last, training.sites, best=not training.last),
        _rounds_made(last),
        [server_folder(workspace) for workspace in (*parts, last)],
    )


def _part(training: Training, number: int) -> Path:
    """FLARE's workspace up to an interruption, or from one on."""
    return training.folder / f"part-{number}"


def _parts(training: Training) -> list[Path]:
    """Workspaces of the parts that have left a model after some round, oldest first."""
    parts: list[Path] = []
    while (checkpoint_folder(_part(training, len(parts))) / LAST_FILE).is_file():
        if not _rounds_made(_part(training, len(parts))):
            break
        parts.append(_part(training, len(parts)))
    return parts


def _rounds_made(workspace: Path) -> int:
    return int(load(checkpoint_folder(workspace) / LAST_FILE).manifest.get("round", 0))


def _simulate(training: Training, number: int, parts: Sequence[Path], tell: Tell) -> None:
    """Make the rounds that the parts have not made, in a part of its own."""
    job, start, made = training.job(), training.initial_body, 0
    states: dict[str, Path] = {}
    if parts:
        before = parts[-1]
        start = checkpoint_folder(before) / LAST_FILE
        manifest = load(start).manifest
        made = int(manifest["round"])
        job = job.with_settings({"num_rounds": manifest.missing_rounds})
        own = {site: checkpoint_folder(before, site) for site in training.sites}
        states = {site: folder for site, folder in own.items() if has_state(folder)}
    folder = training.folder / f"job-{number}"
    shutil.rmtree(folder, ignore_errors=True)
    job_export.write(job, folder)
    simulate(
        folder,
        _part(training, number),
        environment={
            "CXR_SITES": str(training.site_files.absolute()),
            "CXR_INITIAL_BODY": str(start.absolute()),
        },
        states=states,
        watch=lambda events: tell(made + sum(event["event"] == "round" for event in events)),
    )
