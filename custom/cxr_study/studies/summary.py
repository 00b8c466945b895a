"""What came out of a study, as files and in a few lines for the console."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table

from cxr_study.rows import Row
from cxr_study.studies.means import by_run, over_seeds
from cxr_study.studies.run import Run
from cxr_study.studies.run_folder import RUNS, read_result
from cxr_study.studies.scores import scores

SCORES_FILE = "scores.csv"
"""Class by class; see `scores`."""

MEANS_FILE = "means.csv"
"""Means over classes, of every run; see `means.by_run`."""

SEEDS_FILE = "seeds.csv"
"""Means over seeds of those, with intervals; see `means.over_seeds`."""

RUNS_FILE = "runs.csv"
"""All runs, with key, seconds and rounds; empty where one is not finished."""


def write(runs: Sequence[Run], folder: Path, target: Path) -> pd.DataFrame:
    """Measure the finished runs of a study, and write the csv files above.

    Args:
        runs: Of the study.
        folder: Of the studies.
        target: Folder for the files.

    Returns:
        Means over seeds; empty where no run is finished.
    """
    target.mkdir(parents=True, exist_ok=True)
    _listed(runs, folder).to_csv(target / RUNS_FILE, index=False)
    measured = scores(runs, folder)
    if measured.empty:
        return measured
    means = by_run(measured)
    seeds = over_seeds(means)
    for name, frame in ((SCORES_FILE, measured), (MEANS_FILE, means), (SEEDS_FILE, seeds)):
        frame.to_csv(target / name, index=False, float_format="%.6g")
    return seeds


def _listed(runs: Sequence[Run], folder: Path) -> pd.DataFrame:
    rows = []
    for run in runs:
        result = read_result(folder / RUNS / run.key)
        rows.append(
            {
                "setting": run.setting,
                "method": run.row.method,
                "strategy": run.row.strategy,
                "seed": run.seed,
                "key": run.key,
                "sites": json.dumps(run.where["sites"]),
                "seconds": None if result is None else round(result.seconds, 1),
                "rounds": None if result is None else result.rounds,
                "best_round": None if result is None else result.best_round,
            }
        )
    return pd.DataFrame(rows)


def show(title: str, factor: str, seeds: pd.DataFrame, console: Console) -> None:
    """Print mean AUROCs over all classes, with their intervals over seeds; "-" is not defined.

    Args:
        title: Of the study.
        factor: What varies from setting to setting.
        seeds: As `write` returns it.
        console: Where.
    """
    tests = list(dict.fromkeys(seeds["test"]))
    table = Table(title=f"{title}: mean AUROC (95 % interval over seeds)", box=None)
    for heading in (factor, "method", "batch norm", "model", *tests):
        table.add_column(heading, no_wrap=heading in tests)
    shown = seeds[seeds["group"] == "all"]
    for keys, rows in shown.groupby(["setting", "method", "strategy", "model"], sort=False):
        setting, method, strategy, model = keys
        row = Row(method, strategy)
        by_test = {each["test"]: _told(each) for _, each in rows.iterrows()}
        table.add_row(
            setting, row.title, row.variant, model, *(by_test.get(test, "") for test in tests)
        )
    console.print(table)


def _told(row: pd.Series) -> str:
    if np.isnan(row["auroc"]):
        return "-"
    told = f"{row['auroc']:.3f}"
    if not np.isnan(row["auroc_low"]):
        told += f" ({row['auroc_low']:.3f} to {row['auroc_high']:.3f})"
    return told
