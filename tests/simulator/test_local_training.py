"""Training without a federation is a federation of one, in FLARE's simulator."""

import json
import subprocess
import sys

import tiny_job
from simulated import SITES, run, same
from surgical_aggregation.checkpoints.checkpoint import load

ALONE = """
import sys
from pathlib import Path
from surgical_aggregation.site.training.tensorflow_setup import configure
configure(1, 0)
from cxr_studies.baseline.without_federation import train_alone
from surgical_aggregation.checkpoints.checkpoint import load
from surgical_aggregation.site.training.training_options import TrainingOptions
from tiny_site import TinySite
table, body, out = sys.argv[1:]
site = TinySite("north", table)
train_alone(
    site, TrainingOptions(strategy="fedavg", learning_rate=1e-3, warmup_epochs=1), load(Path(body)),
    measured_at={"north": site}, rounds=3, out=Path(out), facts={},
    average_decay=0.5, refit_model="best",
)
"""


def test_the_models_are_the_same_bit_for_bit(tmp_path, initial_body):
    sites = {"north": SITES["north"]}
    (tmp_path / "sites.json").write_text(json.dumps(sites), encoding="utf-8")
    federated = run(
        tmp_path / "federated", sites, initial_body,
        num_rounds=3, min_clients=1, strategy="fedavg", threads=1, site=tiny_job.KERAS,
        average_decay=0.5, refit_model="best",
    )  # fmt: skip
    command = [sys.executable, "-c", ALONE, tmp_path / "sites.json", initial_body, tmp_path / "out"]
    subprocess.run(command, check=True)
    for name in ("best", "last", "average", "refit"):
        ours, alone = federated.checkpoint(name), load(tmp_path / f"out/{name}.npz")
        assert same(ours, alone)
        for fact in ("round", "classes", "head_features", "initial_body_sha256"):
            assert alone.manifest[fact] == ours.manifest[fact]
        for fact in ("round", "metric", "value", "sites"):
            assert alone.manifest["best"][fact] == ours.manifest["best"][fact]
