"""FLARE's own FedAvg, and the product's workflow, over the sites of the smallest example."""

import json
import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from surgical_aggregation.checkpoints.checkpoint import digest, load

EXAMPLE = Path(__file__).parents[2] / "custom/examples/hello_surgical"
MODEL = "server/simulate_job/models/last.npz"
OURS = "surgical_aggregation.server"

pytestmark = pytest.mark.simulator


def python(folder, *words):
    """Run Python in a folder; what it says."""
    done = subprocess.run(
        [sys.executable, *map(str, words)], cwd=folder, capture_output=True, text=True,
        timeout=480, env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout + done.stderr


def through_federated_training(job):
    """Put the product's workflow in the place of FLARE's, and nothing else."""
    file = job / "app_server/config/config_fed_server.json"
    config = json.loads(file.read_text())
    (fedavg,) = config["workflows"]
    aggregator = {"id": "aggregator", **fedavg["args"]["aggregator"]}
    merge = {
        "id": "shareable_generator", "path": f"{OURS}.models.global_model.MergeIntoGlobalModel",
    }  # fmt: skip
    config["components"] += [aggregator, merge]
    path = f"{OURS}.workflows.federated_training.FederatedTraining"
    config["workflows"] = [{"id": "train", "path": path, "args": {"num_rounds": 2}}]
    file.write_text(json.dumps(config))


def test_fedavg_makes_the_model_of_federated_training_bit_for_bit(tmp_path):
    sys.path.insert(0, str(EXAMPLE))
    try:
        recipe = runpy.run_path(str(EXAMPLE / "job.py"))["recipe"](tmp_path, rounds=2)
    finally:
        sys.path.remove(str(EXAMPLE))
    recipe.export(str(tmp_path / "jobs"))
    made = {}
    for workflow in ("fedavg", "training"):
        job = tmp_path / "jobs/hello_surgical"
        if workflow == "training":
            through_federated_training(job)
        simulator = ("-m", "nvflare.private.fed.app.simulator.simulator", job)
        python(tmp_path, *simulator, "-w", tmp_path / workflow, "-c", "north,south", "-t", "2")
        made[workflow] = load(tmp_path / workflow / MODEL)
    classes = {name: of["sites"] for name, of in made["fedavg"].manifest["classes"].items()}
    assert classes == {"Circle": ["north", "south"], "Cross": ["south"], "Square": ["north"]}
    assert made["fedavg"].manifest.round == made["training"].manifest.round == 2
    assert digest(made["fedavg"].variables) == digest(made["training"].variables)


def test_it_trains_one_model_for_the_classes_of_both_sites(tmp_path):
    said = python(tmp_path, EXAMPLE / "job.py")
    found = dict(line.split(": AUROC ") for line in said.splitlines() if line[:6] != "north," and
                 line.partition(":")[0] in ("Circle", "Cross", "Square"))  # fmt: skip
    assert found.keys() == {"Circle", "Cross", "Square"}
    assert all(float(value) > 0.9 for value in found.values())
