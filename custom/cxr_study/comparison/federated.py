"""Federated rows of a comparison: a FLARE job in the simulator, and one that continues it."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from cxr_study.comparison.grid import ENDINGS, Cell
from cxr_study.runs import method_job, results
from cxr_study.runs.method_job import Models
from cxr_study.runs.simulation import LostSiteError, simulate
from cxr_study.runs.simulator_folders import checkpoint_folder, server_folder
from cxr_study.runs.training_process import Tell
from surgical_aggregation.server.models.model_files import LAST_FILE


def train(cell: Cell, union: str, folder: Path, tell: Tell) -> dict[str, tuple[Models, int]]:
    """Train to both endings.

    One job makes `Setup.rounds` rounds; another goes on from there, with the sites' optimizers, and
    stops early. So both endings are of one training.

    Args:
        cell: What to train.
        union: Classes of all sites, by comma.
        folder: New folder for jobs and workspaces.
        tell: How far it is.

    Returns:
        Ending -> models and number of rounds made.

    Raises:
        SimulationError: A job failed.
        ValueError: A knob, a site file or the initial body is unusable.
    """
    setup = cell.setup
    first = folder / "first"
    _run(cell, union, first, setup.rounds, 0, cell.initial_body, {}, tell)
    equal, early = ENDINGS
    trained = {equal: (_models(cell, first, best=False), setup.rounds)}
    if setup.most_rounds == setup.rounds:
        return {**trained, early: (_models(cell, first, best=True), setup.rounds)}
    more = folder / "more"
    _run(
        cell,
        union,
        more,
        setup.most_rounds - setup.rounds,
        setup.patience,
        checkpoint_folder(_workspace(first)) / LAST_FILE,
        {site: checkpoint_folder(_workspace(first), site) for site in setup.sites},
        lambda rounds: tell(setup.rounds + rounds),
    )
    made = setup.rounds + results.rounds_run(server_folder(_workspace(more)))
    return {**trained, early: (_models(cell, more, best=True), made)}


def _run(
    cell: Cell,
    union: str,
    folder: Path,
    rounds: int,
    patience: int,
    start: Path,
    states: Mapping[str, Path],
    tell: Tell,
) -> None:
    sites = cell.setup.sites
    method_job.configure(
        cell.row,
        folder / "job",
        sites=sites,
        union=union.split(","),
        settings={
            **cell.setup.settings,
            "seed": cell.seed,
            "num_rounds": rounds,
            "patience": patience,
        },
    )
    environment = {
        "CXR_SITES": str(cell.site_files.absolute()),
        "CXR_INITIAL_BODY": str(start.absolute()),
    }

    def watch(events: list[dict]) -> None:
        tell(sum(event["event"] == "round" for event in events))

    def once() -> None:
        workspace = _workspace(folder)
        simulate(
            folder / "job", workspace, sites, environment=environment, states=states, watch=watch
        )

    try:
        once()
    except LostSiteError:  # to a full memory, say
        shutil.rmtree(_workspace(folder), ignore_errors=True)
        once()


def _workspace(folder: Path) -> Path:
    return folder / "workspace"


def _models(cell: Cell, folder: Path, *, best: bool) -> Models:
    return method_job.models(cell.row, _workspace(folder), cell.setup.sites, best=best)
