"""Training without a federation is a federation of one, in FLARE's simulator."""

import json
import subprocess
import sys

import numpy as np
import pytest

import tiny_job
from simulated import SITES, run
from surgical_aggregation.checkpoints.checkpoint import load

ALONE = """
import sys
from pathlib import Path
from surgical_aggregation.site.training.tensorflow_setup import configure
configure(1, 0)
from cxr_study.training.without_federation import train_alone
from surgical_aggregation.checkpoints.checkpoint import load
from surgical_aggregation.site.training.training_options import TrainingOptions
from tiny_site import TinySite
table, body, out = sys.argv[1:]
site = TinySite("north", table)
train_alone(
    site, TrainingOptions(strategy="fedavg", learning_rate=1e-3, warmup_epochs=1), load(Path(body)),
    measured_at={"north": site}, rounds=3, out=Path(out), facts={},
)
"""


@pytest.fixture(scope="module")
def both(tmp_path_factory, initial_body):
    """North in a federation of one, and north alone: model -> the two."""
    folder, sites = tmp_path_factory.mktemp("alone"), {"north": SITES["north"]}
    (folder / "sites.json").write_text(json.dumps(sites), encoding="utf-8")
    federated = run(
        folder / "federated", sites, initial_body,
        num_rounds=3, min_clients=1, strategy="fedavg", threads=1, site=tiny_job.KERAS,
    )  # fmt: skip
    command = [sys.executable, "-c", ALONE, folder / "sites.json", initial_body, folder / "out"]
    subprocess.run(command, check=True)
    return {
        name: (federated.checkpoint(name), load(folder / f"out/{name}.npz"))
        for name in ("best", "last")
    }


@pytest.mark.parametrize("name", ["best", "last"])
def test_the_models_are_the_same_bit_for_bit(both, name):
    federated, alone = both[name]
    assert federated.variables.keys() == alone.variables.keys()
    for path, value in federated.variables.items():
        np.testing.assert_array_equal(alone.variables[path], value)
    for fact in ("round", "classes", "head_features", "initial_body_sha256"):
        assert alone.manifest[fact] == federated.manifest[fact]


def test_the_same_model_is_the_best_by_the_same_loss(both):
    federated, alone = (model.manifest["best"] for model in both["best"])
    for fact in ("round", "metric", "value", "sites"):
        assert alone[fact] == federated[fact]
