"""A run of a study without a federation: each site alone, or all data in one place."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cxr_study.jobs import presets
from cxr_study.jobs.job_settings import Settings
from cxr_study.jobs.methods import Row
from cxr_study.runs import baseline_run
from cxr_study.runs.baseline_run import SoloRun
from cxr_study.runs.training_process import Tell
from cxr_study.studies.runner.training import Trained, Training
from cxr_study.training.baseline import BEST_FILE, ROUNDS_FILE

_SAME_RECIPE = {"complete": "centralised"}
"""Method that differs from one of `baseline_run.METHODS` in its site files alone -> that one."""


def train(training: Training, tell: Tell) -> Trained:
    """Train to the end, in this process; an interrupted training is made anew.

    Of sites that train alone one after the other, the rounds are those of the site that made most,
    and losses are given for the rounds that all of them made.

    Args:
        training: What to train; no federated row.
        tell: How far it is.

    Raises:
        ValueError: A knob, a site file or the initial body is unusable.
    """
    row, sites = training.row, training.sites
    alone = row.method == "individual"
    best: dict[str, Path] = {}
    losses: list[list[float | None]] = []
    for group in [(site,) for site in sites] if alone else [sites]:
        out = training.folder / "-".join(group)
        own = knobs(row, group, training.union, training.preset, training.settings)
        baseline_run.train(
            SoloRun(_method(row), group, own, out, training.site_files, training.initial_body),
            lambda made, _: tell(made),
        )
        lines = (out / ROUNDS_FILE).read_text(encoding="utf-8").splitlines()
        losses.append([json.loads(line)["mean_validation_bce"] for line in lines])
        best |= dict.fromkeys(group, out / BEST_FILE)
    return Trained(best, max(map(len, losses)) - 1, tuple(map(_mean, zip(*losses, strict=False))))


def knobs(
    row: Row, sites: Sequence[str], union: Sequence[str], preset: str | None, settings: Settings
) -> dict[str, Any]:
    """Every knob of a row without a federation, set or not.

    Args:
        row: How to train.
        sites: Names of the sites. What a preset says for one site counts where that site is the
            only one and trains alone.
        union: Classes of all of them.
        preset: See `presets`; None: none.
        settings: Knob -> value; they win, the row's strategy apart. Those that mean something in a
            federation alone are left out.

    Raises:
        JobError: There is no such preset, or a value is of another kind than the job's own.
    """
    alone = sites if row.method == "individual" and len(sites) == 1 else ()
    given, per_site = presets.apply(preset, settings, {}, alone)
    given |= per_site.get(sites[0], {})
    own: dict[str, object] = {"threads": 1}
    if row.method != "individual":
        own["union"] = ",".join(union)
    own |= {name: value for name, value in given.items() if name in baseline_run.KNOBS}
    return baseline_run.knobs(_method(row), {**own, "strategy": row.strategy})


def _method(row: Row) -> str:
    return _SAME_RECIPE.get(row.method, row.method)


def _mean(losses: Sequence[float | None]) -> float | None:
    known = [loss for loss in losses if loss is not None]
    return sum(known) / len(known) if len(known) == len(losses) else None
