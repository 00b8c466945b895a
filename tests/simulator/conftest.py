"""Runs in FLARE's real simulator, shared by the tests that look at them."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

import tiny_job
from once import once
from simulated import SETTINGS, SITES, Run, by_recipe, run, undisturbed_run

FAULTY = {**SITES, "east": {"classes": ["EDEMA"], "images": 8}}
FAULTS = [
    "west:1:crash", "west:2:crash", "west:3:truncated", "south:2:nan", "north:3:unlabelled",
    "west:4:huge", "north:1:torn", "east:start:north",
]  # fmt: skip


@pytest.fixture(scope="session")
def initial_body(tmp_path_factory):
    return tiny_job.initial_body(tmp_path_factory.mktemp("initial") / "body.npz")


@pytest.fixture(scope="session")
def runs(tmp_path_factory, initial_body):
    """Three runs: one tracked, the same by the recipe, untracked, one with faults.

    In the last one, "east" spells a class in its own way.
    """

    def make(folder):
        run(folder / "first", SITES, initial_body, **{**SETTINGS, "tracking": "tensorboard"})
        run(
            folder / "faulty", FAULTY, initial_body, plan=FAULTS, num_rounds=5, min_clients=1,
            wait_seconds=60, server_optimizer="fedadam", server_learning_rate=0.01,
        )  # fmt: skip
        by_recipe("simulator", folder, SITES, SETTINGS)

    folder = once(tmp_path_factory, "runs", make)
    recipe = Run(folder)
    recipe.workspace = Path(json.loads((folder / "found.json").read_text()))
    recipe.server = recipe.workspace / "server/simulate_job"
    first, faulty = (Run(folder / name) for name in ("first", "faulty"))
    return SimpleNamespace(first=first, recipe=recipe, faulty=faulty)


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory):
    """The run with honest sites alone, without faults."""
    return undisturbed_run(tmp_path_factory, "undisturbed")
