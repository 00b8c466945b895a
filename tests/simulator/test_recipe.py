"""The recipe in FLARE's simulator, beside the same job as a folder."""

import json
from pathlib import Path

import numpy as np
import pytest
from nvflare.recipe import SimEnv

from cxr_study.recipe import SurgicalAggregationRecipe
from surgical_aggregation.checkpoint import load
from tiny_run import SITES
from tiny_site import TinySite

pytestmark = [pytest.mark.simulator, pytest.mark.keras]


def test_it_ends_bit_equal_to_the_run_of_the_folder(runs, initial_body, tmp_path):
    (tmp_path / "sites.json").write_text(json.dumps(SITES))
    recipe = SurgicalAggregationRecipe(
        sites=list(SITES),
        num_rounds=3,
        initial_body=str(initial_body),
        site=TinySite("{SITE_NAME}", str(tmp_path / "sites.json")),
    )
    run = recipe.execute(SimEnv(clients=list(SITES), workspace_root=str(tmp_path)))
    last = load(Path(run.get_result()) / "server/simulate_job/models/last.npz")
    assert last.variables.keys() == runs.first.last.variables.keys()
    for name, value in last.variables.items():
        np.testing.assert_array_equal(value, runs.first.last.variables[name], name)
