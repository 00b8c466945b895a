"""A run of a study without a federation: each site alone, or all data in one place."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cxr_studies.baseline import BEST_FILE, LAST_FILE, ROUNDS_FILE, baseline_run
from cxr_studies.baseline.baseline_run import BaselineRun
from cxr_studies.plan import run_settings
from cxr_studies.runner.training import Trained, Training, mean
from cxr_studies.runner.training_process import Tell


def train(training: Training, tell: Tell) -> Trained:
    """Train to the end, in this process; an interrupted training is made anew.

    Of sites that train alone one after the other, the rounds are those of the site that made most,
    and losses and AUROCs are given for the rounds that all of them made.

    Raises:
        ValueError: A setting, a site file or the initial body is unusable.
    """
    row, sites = training.row, training.sites
    alone = row.method == "individual"
    models: dict[str, Path] = {}
    measured: list[list[dict[str, Any]]] = []
    for group in [(site,) for site in sites] if alone else [sites]:
        out = training.folder / "-".join(group)
        given = training.union, training.preset, training.settings
        settings = run_settings.all_settings(row, group, *given)
        method, files = run_settings.baseline_method(row), training.site_files
        run = BaselineRun(method, group, settings, out, files, training.initial_body)
        baseline_run.train(run, lambda made, _: tell(made))
        lines = (out / ROUNDS_FILE).read_text(encoding="utf-8").splitlines()
        measured.append([json.loads(line) for line in lines])
        models |= dict.fromkeys(group, out / (LAST_FILE if training.last else BEST_FILE))
    return Trained(
        models,
        max(map(len, measured)) - 1,
        losses=_means(measured, "mean_validation_bce"),
        aurocs=_means(measured, "mean_validation_auroc"),
        images=sum(lines[0]["images"] for lines in measured),
    )


def _means(measured: Sequence[Sequence[dict[str, Any]]], name: str) -> tuple[float | None, ...]:
    """Over trainings, of the rounds that all of them made."""
    return tuple(mean([line[name] for line in lines]) for lines in zip(*measured, strict=False))
