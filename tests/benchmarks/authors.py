"""A round of ours beside one of the papers' released code: the same images, network and sites.

Usage: python tests/benchmarks/authors.py [--images 2816] [--rounds 4] [--code FOLDER]

Their code (GPL-3.0) is cloned into a temporary folder, or taken from a clone that --code names, and
runs in an environment of its own with TensorFlow 2.15, which --environment keeps for a next time.
Two sites of exp1.1, DenseNet121 without weights and with their hidden layer, FedAvg, batches of 64,
their augmentation. Theirs trains both sites one after the other in one process, and measures
training and validation images after each round; ours trains them side by side in FLARE's simulator
and measures validation images. Rounds after the first count. Where the code cannot be had, the
benchmark says so and measures nothing.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

import numpy as np
import pandas as pd
from drawn_site import arrays, draw
from measure import SUPPORT, options
from PIL import Image

import tiny_job
from body_statistics import with_statistics
from cxr_study.runs.finished_run import server_folder
from cxr_study.runs.job_results import read_events
from cxr_study.runs.simulator_process import simulate
from cxr_study.training.network import build
from surgical_aggregation.checkpoints.checkpoint import save
from surgical_aggregation.site.contract.architecture import initial_body

HERE = Path(__file__).resolve().parent
REPOSITORY = "https://github.com/BioIntelligence-Lab/SurgicalAggregation"
REQUIRED = ("tensorflow==2.15.1", "pandas<3", "numpy<2")
SITES = {
    "site-1": [
        *("Cardiomegaly", "Consolidation", "Edema", "Emphysema", "Fibrosis", "Hernia"),
        *("Infiltration", "Mass", "Pleural Effusion", "Pleural Thickening", "Pneumonia"),
    ],
    "site-2": [
        *("Atelectasis", "Cardiomegaly", "Emphysema", "Mass", "Nodule", "Pleural Effusion"),
        "Pneumothorax",
    ],
}
"""Classes of the sites of the released code's exp1.1 with two clients."""

HIDDEN = 256
"""Units between pooling and head in the released code."""


def released_code(folder, given):
    """Folder of the released code's modules; None where it cannot be had."""
    if not given:
        clone = subprocess.run(
            ["git", "clone", "--quiet", "--depth", "1", REPOSITORY, str(folder)],
            env={**os.environ, "GIT_TERMINAL_PROMPT": "0"}, capture_output=True, text=True,
        )  # fmt: skip
        if clone.returncode:
            print(f"{REPOSITORY} cannot be had: {clone.stderr.strip()}")
            return None
    source = Path(given or folder, "src")
    return source if (source / "federated.py").is_file() else None


def environment(folder):
    """Python of an environment with what the released code needs, made where it is not there."""
    python = folder / "bin/python"
    if not python.is_file():
        print(f"making an environment with {', '.join(REQUIRED)}", flush=True)
        venv.create(folder, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *REQUIRED], check=True)
    return python


def as_files(sites, folder):
    """The same images as files, with a table for each site and split, as theirs reads them."""
    described = []
    for name, entry in sites.items():
        site = {"classes": entry["classes"]}
        for split in ("train", "validation"):
            images, labels = arrays(entry["folder"], split)
            place = folder / name / split
            place.mkdir(parents=True)
            files = [str(place / f"{number}.png") for number in range(len(images))]
            for file, pixels in zip(files, images, strict=True):
                Image.fromarray(pixels).save(file)
            table = pd.DataFrame(labels, columns=entry["classes"]).assign(path=files)
            site[split] = str(place / "table.csv")
            table.to_csv(site[split], index=False)
        described.append(site)
    return described


def theirs(python, source, folder, sites, wanted):
    """Seconds of each round but the first, of the released code."""
    described = {"sites": as_files(sites, folder), "rounds": wanted.rounds, "side": wanted.side}
    description = folder / "description.json"
    description.write_text(json.dumps(described))
    command = [python, "-u", HERE / "authors_driver.py", source, description]
    quiet = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    marks, last = [], []
    with subprocess.Popen(
        command, cwd=folder, env=quiet, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    ) as process:  # fmt: skip
        for line in process.stdout:
            last = [*last[-20:], line]
            if re.match(r"Step \d+/", line):
                marks.append(time.monotonic())
    marks.append(time.monotonic())
    if process.returncode:
        raise SystemExit(f"the released code failed:\n{''.join(last)}")
    return np.diff(marks)[1:]


def ours(folder, sites, wanted):
    """Seconds of each round but the first, of our job in FLARE's simulator."""
    body = folder / "body.npz"
    network = build("densenet121", 1, image_size=wanted.side, hidden=HIDDEN)
    save(with_statistics(initial_body(network)), body)
    settings = {
        "num_rounds": wanted.rounds, "min_clients": len(sites), "strategy": "fedavg",
        "learning_rate": 5e-5, "warmup_epochs": 1, "tracking": "none",
    }  # fmt: skip
    job = tiny_job.make(folder / "job", sites, settings=settings, site="drawn_site.DrawnSite")
    paths = os.pathsep.join([str(HERE), SUPPORT, os.environ.get("PYTHONPATH", "")])
    workspace = folder / "workspace"
    simulate(
        job, workspace, list(sites),
        environment={"PYTHONPATH": paths, "CXR_INITIAL_BODY": str(body)},
    )  # fmt: skip
    events = read_events(server_folder(workspace))
    return np.array([event["seconds"] for event in events if event["event"] == "round"])[1:]


def main():
    wanted = options(__doc__, images=2816, side=64, rounds=4, code="", environment="")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        source = released_code(folder / "code", wanted.code)
        if source is None:
            print("Nothing was measured: name a clone of the released code with --code.")
            sys.exit(1)
        python = environment(Path(wanted.environment or folder / "environment"))
        each = wanted.images // len(SITES)
        sites = {
            name: draw(
                folder / name, classes=classes, train=each, validation=each // 8,
                side=wanted.side, backbone="densenet121", hidden=HIDDEN, augmentation="paper",
            )
            for name, classes in SITES.items()
        }  # fmt: skip
        (folder / "theirs").mkdir()
        (folder / "ours").mkdir()
        took = {
            "released code": theirs(python, source, folder / "theirs", sites, wanted),
            "ours": ours(folder / "ours", sites, wanted),
        }
    for name, rounds in took.items():
        print(
            f"{name:14} {np.median(rounds):7.1f} s a round "
            f"({rounds.min():.1f} to {rounds.max():.1f})"
        )
    medians = [np.median(rounds) for rounds in took.values()]
    print(f"ours takes {medians[1] / medians[0]:.2f} of the released code's time")


if __name__ == "__main__":
    main()
