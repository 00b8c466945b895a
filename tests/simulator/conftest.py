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
    "west:1:crash", "west:2:crash", "west:3:truncated", "south:2:nan", "north:3:foreign",
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
    return SimpleNamespace(first=first, recipe=by_recipe(folder, initial_body), faulty=faulty)


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory):
    """The run that faults and lies strike, without them."""
    return undisturbed_run(tmp_path_factory, "undisturbed")


def by_recipe(folder, initial_body):
    """The first run, as the recipe makes it."""
    table, log = folder / "sites.json", folder / "recipe.log"
    table.write_text(json.dumps(SITES))
    command = [RECIPES, "simulator", folder, table, initial_body, json.dumps(SETTINGS)]
    with log.open("w") as output:
        done = subprocess.run(
            [sys.executable, *command], stdout=output, stderr=subprocess.STDOUT, timeout=300
        )
    assert done.returncode == 0, log.read_text()[-3000:]
    made = Run(folder)
    made.workspace = Path(json.loads((folder / "found.json").read_text()))
    made.server = made.workspace / "server/simulate_job"
    return made
