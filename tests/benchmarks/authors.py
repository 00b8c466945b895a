"""A round of ours beside one of the papers' released code: the same images, network and sites.

Usage: python tests/benchmarks/authors.py [--images 2816] [--rounds 4] [--repeats 2] [--code FOLDER]

Their code (GPL-3.0) is cloned into a temporary folder, or taken from a clone that --code names, and
runs in an environment of its own with TensorFlow 2.15, which --environment keeps for a next time.
Two sites of exp1.1, DenseNet121 without weights and with their hidden layer, FedAvg, batches of 64,
their augmentation. Theirs trains both sites one after the other in one process, and measures
training and validation images after each round; ours trains them side by side in FLARE's simulator
and measures validation images; a second time in mixed precision, where this machine gains by that.
All run in turn, `--repeats` times; rounds after the first count. Where the code cannot be had, the
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
from surgical_aggregation.site.training.tensorflow_setup import half_precision

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
    folder.mkdir()
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


def ours(folder, sites, wanted, **changed):
    """Seconds of each round but the first, of our job in FLARE's simulator."""
    folder.mkdir()
    body = folder / "body.npz"
    network = build("densenet121", 1, image_size=wanted.side, hidden=HIDDEN)
    save(with_statistics(initial_body(network)), body)
    settings = {
        "num_rounds": wanted.rounds, "min_clients": len(sites), "strategy": "fedavg",
        "learning_rate": 5e-5, "warmup_epochs": 1, "tracking": "none", **changed,
    }  # fmt: skip
    job = tiny_job.make(folder / "job", sites, settings=settings, site="drawn_site.DrawnSite")
    paths = os.pathsep.join([str(HERE), SUPPORT, os.environ.get("PYTHONPATH", "")])
    workspace = folder / "workspace"
    simulate(
        job, workspace,
        environment={"PYTHONPATH": paths, "CXR_INITIAL_BODY": str(body)},
    )  # fmt: skip
    events = read_events(server_folder(workspace))
    return np.array([event["seconds"] for event in events if event["event"] == "round"])[1:]


def main():
    wanted = options(__doc__, images=2816, side=64, rounds=4, repeats=2, code="", environment="")
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
        contestants = {
            "released code": lambda folder: theirs(python, source, folder, sites, wanted),
            "ours": lambda folder: ours(folder, sites, wanted),
        }
        if half_precision():
            contestants["ours, mixed precision"] = lambda folder: ours(
                folder, sites, wanted, mixed_precision=True
            )
        took = {name: [] for name in contestants}
        for repeat in range(wanted.repeats):
            for name, rounds in contestants.items():
                took[name].extend(rounds(folder / f"{name}-{repeat}".replace(" ", "-")))
    reference = took["released code"]
    for name, rounds in took.items():
        middle, fastest = (found(rounds) / found(reference) for found in (np.median, min))
        span = f"({min(rounds):.1f} to {max(rounds):.1f})"
        of_theirs = f"{middle:.2f} of the released code's, {fastest:.2f} by the fastest rounds"
        print(f"{name:22}{np.median(rounds):6.1f} s a round {span}; {of_theirs}")


if __name__ == "__main__":
    main()
