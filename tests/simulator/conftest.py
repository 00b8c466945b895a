"""Runs in FLARE's real simulator, shared by the tests that look at them."""

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import tiny_job
from simulated import SETTINGS, SITES, Run, run, undisturbed_run

RECIPES = Path(__file__).parents[1] / "support/recipes.py"
FAULTS = [
    "west:1:crash", "west:2:crash", "west:3:truncated", "south:2:nan", "north:3:unlabelled",
]  # fmt: skip


@pytest.fixture(scope="session")
def initial_body(tmp_path_factory):
    return tiny_job.initial_body(tmp_path_factory.mktemp("initial") / "body.npz")


@pytest.fixture(scope="session")
def runs(tmp_path_factory, initial_body):
    """Three runs: one tracked, the same by the recipe, untracked, one with faults."""
    folder = tmp_path_factory.mktemp("runs")
    first = run(folder / "first", SITES, initial_body, **{**SETTINGS, "tracking": "tensorboard"})
    faulty = run(
        folder / "faulty", SITES, initial_body, plan=FAULTS, num_rounds=4, min_clients=1,
        wait_seconds=60,
    )  # fmt: skip
    table = folder / "sites.json"
    table.write_text(json.dumps(SITES))
    command = [RECIPES, "simulator", folder, table, initial_body, json.dumps(SETTINGS)]
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    recipe = Run(folder)
    recipe.workspace = Path(json.loads((folder / "found.json").read_text()))
    recipe.server = recipe.workspace / "server/simulate_job"
    return SimpleNamespace(first=first, recipe=recipe, faulty=faulty)


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory):
    """The run that faults and lies strike, without them."""
    return undisturbed_run(tmp_path_factory, "undisturbed")
