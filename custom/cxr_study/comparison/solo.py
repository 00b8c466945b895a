"""Rows of a comparison that are no federation: sites alone, and all sites' data in one place."""

from __future__ import annotations

import shutil
from pathlib import Path

from cxr_study.comparison.grid import ENDINGS, Cell, Setup
from cxr_study.runs import baseline_run
from cxr_study.runs.baseline_run import SoloRun
from cxr_study.runs.method_job import Models
from cxr_study.runs.training_process import Tell
from cxr_study.training.baseline import BEST_FILE, LAST_FILE
from surgical_aggregation.checkpoints.checkpoint import load

_EQUAL_FILE = "equal_rounds.npz"


def train(cell: Cell, union: str, folder: Path, tell: Tell) -> dict[str, tuple[Models, int]]:
    """Train to both endings, in this process; see `federated.train`.

    Of a row that trains each site alone, the rounds made are those of the site that made most.
    """
    setup = cell.setup
    groups = [(site,) for site in setup.sites] if cell.row.method == "individual" else [setup.sites]
    equal: dict[str, Path] = {}
    early: dict[str, Path] = {}
    made = 0
    for group in groups:
        out = folder / "-".join(group)
        _train(cell, union, group, out, tell)
        equal |= dict.fromkeys(group, out / _EQUAL_FILE)
        early |= dict.fromkeys(group, out / BEST_FILE)
        made = max(made, load(out / LAST_FILE).manifest["round"])
    return dict(zip(ENDINGS, ((equal, setup.rounds), (early, made)), strict=True))


def _train(cell: Cell, union: str, sites: tuple[str, ...], out: Path, tell: Tell) -> None:
    setup = cell.setup
    settings = {
        **own_settings(setup),
        "strategy": cell.row.strategy,
        "seed": cell.seed,
        "threads": 1,
        "num_rounds": setup.most_rounds,
        "patience": setup.patience,
    }
    if cell.row.method != "individual":
        settings["union"] = union
    knobs = baseline_run.knobs(cell.row.method, settings)

    def after_round(done: int, _: int) -> None:
        if done == setup.rounds + 1:  # the newest model on disk is the one this round started from
            shutil.copyfile(out / LAST_FILE, out / _EQUAL_FILE)
        tell(done)

    run = SoloRun(cell.row.method, sites, knobs, out, cell.site_files, cell.initial_body)
    baseline_run.train(run, after_round, at_least=setup.rounds)
    if setup.most_rounds == setup.rounds:
        shutil.copyfile(out / LAST_FILE, out / _EQUAL_FILE)


def own_settings(setup: Setup) -> dict[str, object]:
    """The settings that mean something without a federation."""
    return {name: value for name, value in setup.settings.items() if name in baseline_run.KNOBS}
