"""FLARE's own FedAvg, and the product's workflow, over the sites of the smallest example."""

import json
import runpy
import shutil
import sys

import pytest

from surgical_aggregation.checkpoints.checkpoint import digest, load
from typed import EXAMPLES, Typist

EXAMPLE = EXAMPLES / "hello_surgical"
MODEL = "server/simulate_job/models/last.npz"
OURS = "surgical_aggregation.server"
CLASSES = {"Circle": ["north", "south"], "Cross": ["south"], "Square": ["north"]}
ROUNDS = 4
"""Of the example."""


def through_federated_training(job):
    """Put the product's workflow in the place of FLARE's, and nothing else."""
    file = job / "app_server/config/config_fed_server.json"
    config = json.loads(file.read_text())
    (fedavg,) = config["workflows"]
    aggregator = {"id": "aggregator", **fedavg["args"]["aggregator"]}
    path = f"{OURS}.models.global_model.MergeIntoGlobalModel"
    merge = {"id": "shareable_generator", "path": path}
    config["components"] += [aggregator, merge]
    path = f"{OURS}.workflows.federated_training.FederatedTraining"
    config["workflows"] = [{"id": "train", "path": path, "args": {"num_rounds": ROUNDS}}]
    file.write_text(json.dumps(config))


@pytest.fixture(scope="module")
def hello(tmp_path_factory):
    """Folder of the example's run, and what it said."""
    folder = tmp_path_factory.mktemp("hello")
    return folder / "runs/hello", Typist(folder).example("hello_surgical/job.py")


def test_it_trains_one_model_for_the_classes_of_both_sites(hello):
    lines = [line.split(": AUROC ") for line in hello[1].splitlines()]
    found = {line[0]: float(line[1]) for line in lines if line[0] in CLASSES}
    assert found.keys() == CLASSES.keys()
    assert all(value > 0.9 for value in found.values())


def test_fedavg_makes_the_model_of_federated_training_bit_for_bit(hello, tmp_path):
    sys.path.insert(0, str(EXAMPLE))
    try:
        recipe = runpy.run_path(str(EXAMPLE / "job.py"))["recipe"](tmp_path, ROUNDS)
    finally:
        sys.path.remove(str(EXAMPLE))
    shutil.copy(hello[0] / "initial.npz", tmp_path)
    recipe.export(str(tmp_path / "jobs"))
    job = tmp_path / "jobs/hello_surgical"
    through_federated_training(job)
    simulator = ("python", "-m", "nvflare.private.fed.app.simulator.simulator", job)
    of_sites = ("-w", tmp_path / "training", "-c", "north,south", "-t", "2")
    Typist(tmp_path).output_of(*simulator, *of_sites)
    folders = (hello[0] / "hello_surgical", tmp_path / "training")
    fedavg, training = (load(folder / MODEL) for folder in folders)
    assert {name: of["sites"] for name, of in fedavg.manifest["classes"].items()} == CLASSES
    assert fedavg.manifest.round == training.manifest.round == ROUNDS
    assert digest(fedavg.variables) == digest(training.variables)
