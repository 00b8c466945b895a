"""Runs in FLARE's real simulator, shared by the tests that look at them."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from nvflare.recipe import SimEnv

import tiny_job
from cxr_study.recipe import SurgicalAggregationRecipe
from surgical_aggregation.checkpoint import load
from tiny_run import SITES, run
from tiny_site import TinySite

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
        folder / "first", SITES, initial_body, capture=True, num_rounds=3, tracking="tensorboard",
        site=tiny_job.KERAS,
    )  # fmt: skip
    faulty = run(
        folder / "faulty", SITES, initial_body, plan=FAULTS, num_rounds=4, min_clients=1,
        wait_seconds=60,
    )  # fmt: skip
    return SimpleNamespace(first=first, recipe=by_recipe(folder, initial_body), faulty=faulty)


def by_recipe(folder, initial_body):
    """The same run, as the recipe makes it."""
    table = folder / "sites.json"
    table.write_text(json.dumps(SITES))
    recipe = SurgicalAggregationRecipe(
        sites=list(SITES),
        num_rounds=3,
        warmup_epochs=1,
        initial_body=str(initial_body),
        site=TinySite("{SITE_NAME}", str(table)),
        tracking="none",
    )
    made = recipe.execute(SimEnv(clients=list(SITES), workspace_root=str(folder / "recipe")))
    workspace = Path(made.get_result())
    models = workspace / "server/simulate_job/models"
    return SimpleNamespace(
        workspace=workspace, best=load(models / "best.npz"), last=load(models / "last.npz")
    )
