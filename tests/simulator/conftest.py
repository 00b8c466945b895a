"""Runs in FLARE's real simulator, shared by the tests that look at them."""

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import tiny_job
from surgical_aggregation.checkpoints.checkpoint import load
from tiny_run import KNOBS, SITES, run

RECIPE = Path(__file__).parents[1] / "support/simulated_recipe.py"
FAULTS = [
    "west:1:crash", "west:2:crash", "west:3:crash", "south:2:nan", "north:3:foreign",
]  # fmt: skip


@pytest.fixture(scope="session")
def initial_body(tmp_path_factory):
    return tiny_job.initial_body(tmp_path_factory.mktemp("initial") / "body.npz")


@pytest.fixture(scope="session")
def runs(tmp_path_factory, initial_body):
    """Three runs: one captured and tracked, the same by the recipe, untracked, one with faults."""
    folder = tmp_path_factory.mktemp("runs")
    first = run(
        folder / "first", SITES, initial_body, capture=True, **{**KNOBS, "tracking": "tensorboard"}
    )
    faulty = run(
        folder / "faulty", SITES, initial_body, plan=FAULTS, num_rounds=4, min_clients=1,
        wait_seconds=60,
    )  # fmt: skip
    return SimpleNamespace(first=first, recipe=by_recipe(folder, initial_body), faulty=faulty)


def by_recipe(folder, initial_body):
    """The same run, as the recipe makes it."""
    table = folder / "sites.json"
    table.write_text(json.dumps(SITES))
    log, where = folder / "recipe.log", folder / "recipe.txt"
    command = [RECIPE, folder / "recipe", table, initial_body, json.dumps(KNOBS), where]
    with log.open("w") as output:
        done = subprocess.run(
            [sys.executable, *command], stdout=output, stderr=subprocess.STDOUT, timeout=300
        )
    assert done.returncode == 0, log.read_text()[-3000:]
    workspace = Path(where.read_text())
    models = workspace / "server/simulate_job/models"
    return SimpleNamespace(
        workspace=workspace, best=load(models / "best.npz"), last=load(models / "last.npz")
    )
