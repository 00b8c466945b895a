"""The examples as a user runs them: in a folder of their own, with the console script."""

import os
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from cxr_study.evaluation.summary_json import Summary
from surgical_aggregation.checkpoints.checkpoint import load
from typed import Typist

EXAMPLES = Path(__file__).parents[2] / "custom/examples"
FINDINGS = {"north": ("Redness", "Bruise"), "south": ("Redness", "Jaundice")}
COLOURS = {"Redness": (200, 60, 60), "Bruise": (60, 60, 200), "Jaundice": (220, 200, 60)}
SMALL = (
    "--set num_rounds=2 --set image_size=32 --set warmup_epochs=1 --initial-body drawings "
    "--site-files phantom/sites"
).split()


@pytest.fixture(scope="module")
def surgagg(tmp_path_factory):
    return Typist(tmp_path_factory.mktemp("examples"))


@pytest.fixture(scope="module")
def example(surgagg):
    """Run an example; what it says."""

    def run(name, *arguments):
        own = {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "SURGAGG_CACHE": str(surgagg.home / "cache"), "MPLBACKEND": "agg",
        }  # fmt: skip
        done = subprocess.run(
            [sys.executable, EXAMPLES / name, *arguments], env={**os.environ, **own},
            cwd=surgagg.home, capture_output=True, text=True, timeout=480,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]
        return done.stdout

    return run


def test_a_hospitals_folder_becomes_a_site_with_a_renamed_class(surgagg, example):
    said = example("own_data.py")
    assert "'Pleuraerguss' (klinik) resembles 'Pleural Effusion'" in said
    assert "merges:" in (surgagg.home / "sites/klinik.yaml").read_text()
    assert (surgagg.home / "own_data.png").is_file() and (surgagg.home / "audit").is_dir()
    assert example("own_data.py").count("Decide:") == 0  # again: its cells can be run twice


def test_a_run_is_read_and_its_model_used(surgagg, example):
    answered = [
        surgagg("data", "phantom", "phantom", "--images", 120, "--size", 32),
        surgagg("run", "surgical", *SMALL, "--sites", "nih,chexpert", "--out", "runs/example"),
    ]
    assert [call.code for call in answered] == [0, 0], answered[-1].err
    said = example("run_and_results.py")
    summary = Summary.from_json((surgagg.home / "runs/example/report/summary.json").read_text())
    assert f"best round {summary.best.round}" in said and "unlabelled" in said
    assert (surgagg.home / "rounds.png").is_file()
    said = example("use_model.py")
    assert f"{len(summary.union)} classes" in said
    assert len([line for line in said.splitlines() if line.startswith("Cardiomegaly  ")]) == 1


def photographs(folder):
    """Photographs with coloured patches, and the findings that they are."""
    rng = np.random.default_rng(0)
    for site, names in FINDINGS.items():
        (folder / site).mkdir(parents=True)
        rows = []
        for number in range(60):
            pixels = rng.normal(150, 15, (40, 40, 3))
            has = rng.random(2) < 0.4
            for name in np.array(names)[has]:
                top, left = rng.integers(0, 28, 2)
                pixels[top : top + 12, left : left + 12] = COLOURS[name]
            Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(
                folder / site / f"{number}.png"
            )
            split = ("train", "train", "train", "validation", "test")[number % 5]
            rows.append([f"{number}.png", split, *has.astype(int)])
        table = pd.DataFrame(rows, columns=["photo", "split", *names])
        table.to_csv(folder / site / "findings.csv", index=False)


def test_a_site_of_ones_own_trains_in_colour_and_is_reported(surgagg, example):
    photographs(surgagg.home / "data")
    shutil.copy(EXAMPLES / "skin_photos.py", surgagg.home)
    commands = runpy.run_path(str(EXAMPLES / "skin_photos.py"))["__doc__"].splitlines()
    made, report = (
        [word for word in line.partition("#")[0].split()[1:]]
        for line in commands
        if line.startswith("    surgagg ")
    )
    twice = surgagg(*made, "--backbone", "vgg16")
    assert twice.code == 2 and "brings its network; leave out --backbone" in twice.err
    call = surgagg(*made)
    assert call.code == 0, call.err
    assert "take strategy fedavg" in call.out
    said = example("skin_photos.py", "data")
    assert "result  runs/skin/surgical" in said
    call = surgagg(*report)
    assert call.code == 0, call.err
    assert "One model for 3 classes" in call.out and "Measured at the sites" in call.out
    best = load(surgagg.home / "runs/skin/surgical/server/simulate_job/models/best.npz")
    trained = {name: tuple(found["sites"]) for name, found in best.manifest["classes"].items()}
    assert trained == {"Redness": ("north", "south"), "Bruise": ("north",), "Jaundice": ("south",)}
    html = (surgagg.home / "runs/skin/surgical/report/report.html").read_text()
    assert "the sites&#39; own" in html and "fedavg" in html
    refused = surgagg("predict", "runs/skin/surgical", "data/north", "--out", "p.csv")
    assert refused.code == 2 and "have a network of their own" in refused.err
