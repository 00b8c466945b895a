"""A run of a study without a federation: each site alone, or all data in one place."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from cxr_study.runs import baseline_run
from cxr_study.runs.baseline_run import BaselineRun
from cxr_study.runs.training_process import Tell
from cxr_study.studies.plan import run_settings
from cxr_study.studies.runner.training import Trained, Training
from cxr_study.training import BEST_FILE, LAST_FILE, ROUNDS_FILE


def train(training: Training, tell: Tell) -> Trained:
    """Train to the end, in this process; an interrupted training is made anew.

    Of sites that train alone one after the other, the rounds are those of the site that made most,
    and losses are given for the rounds that all of them made.

    Raises:
        ValueError: A setting, a site file or the initial body is unusable.
    """
    row, sites = training.row, training.sites
    alone = row.method == "individual"
    models: dict[str, Path] = {}
    losses: list[list[float | None]] = []
    for group in [(site,) for site in sites] if alone else [sites]:
        out = training.folder / "-".join(group)
        given = training.union, training.preset, training.settings
        settings = run_settings.all_settings(row, group, *given)
        method, files = run_settings.baseline_method(row), training.site_files
        run = BaselineRun(method, group, settings, out, files, training.initial_body)
        baseline_run.train(run, lambda made, _: tell(made))
        lines = (out / ROUNDS_FILE).read_text(encoding="utf-8").splitlines()
        losses.append([json.loads(line)["mean_validation_bce"] for line in lines])
        models |= dict.fromkeys(group, out / (LAST_FILE if training.last else BEST_FILE))
    return Trained(models, max(map(len, losses)) - 1, tuple(map(_mean, zip(*losses, strict=False))))


def _mean(losses: Sequence[float | None]) -> float | None:
    known = [loss for loss in losses if loss is not None]
    return sum(known) / len(known) if len(known) == len(losses) else None
