"""The examples as a user runs them: in a folder of their own, with the console script."""

import runpy
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from cxr_studies.plan.data_file import read_data
from cxr_study.data.labels.label_table import classes
from cxr_study.data.sites.new_site import repeated_images
from cxr_study.data.sites.site_data import check_disjoint, load_labels
from cxr_study.data.sites.site_file import read_site_file
from surgical_aggregation.checkpoints.checkpoint import load
from typed import EXAMPLES, Typist

FINDINGS = {"north": ("Redness", "Bruise"), "south": ("Redness", "Jaundice")}
COLOURS = {"Redness": (200, 60, 60), "Bruise": (60, 60, 200), "Jaundice": (220, 200, 60)}


@pytest.fixture(scope="module")
def surgagg(tmp_path_factory):
    return Typist(tmp_path_factory.mktemp("examples"))


def test_a_hospitals_folder_becomes_a_site_with_a_renamed_class(surgagg):
    output = surgagg.example("own_data.py")
    assert "'Pleuraerguss' (klinik) resembles 'Pleural Effusion'" in output
    assert "merges:" in (surgagg.home / "sites/klinik.yaml").read_text()
    assert (surgagg.home / "own_data.png").is_file() and (surgagg.home / "audit").is_dir()
    assert surgagg.example("own_data.py").count("Decide:") == 0  # again: its cells can be run twice


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
            picture = Image.fromarray(pixels.clip(0, 255).astype(np.uint8))
            picture.save(folder / site / f"{number}.png")
            split = ("train", "train", "train", "validation", "test")[number % 5]
            rows.append([f"{number}.png", split, *has.astype(int)])
        table = pd.DataFrame(rows, columns=["photo", "split", *names])
        table.to_csv(folder / site / "findings.csv", index=False)


def test_a_site_of_ones_own_trains_in_colour_and_is_reported(surgagg):
    photographs(surgagg.home / "data")
    shutil.copy(EXAMPLES / "skin_photos.py", surgagg.home)
    commands = runpy.run_path(str(EXAMPLES / "skin_photos.py"))["__doc__"].splitlines()
    made, report = (
        [word for word in line.partition("#")[0].split()[1:]]
        for line in commands
        if line.startswith("    surgagg ")
    )
    twice = surgagg(*made, "--backbone", "vgg16")
    assert twice.code == 2
    assert "your own Site defines the network; leave out --backbone" in twice.err
    assert "use strategy fedavg" in surgagg.output_of("surgagg", *made)
    assert "result  runs/skin/surgical" in surgagg.example("skin_photos.py", "data")
    output = surgagg.output_of("surgagg", *report)
    assert "One model for 3 classes" in output and "Measured at the sites" in output
    best = load(surgagg.home / "runs/skin/surgical/server/simulate_job/models/best.npz")
    trained = {name: tuple(found["sites"]) for name, found in best.manifest["classes"].items()}
    assert trained == {"Redness": ("north", "south"), "Bruise": ("north",), "Jaundice": ("south",)}
    html = (surgagg.home / "runs/skin/surgical/report/report.html").read_text()
    assert "the sites&#39; own" in html and "fedavg" in html
    refused = surgagg("predict", "runs/skin/surgical", "data/north", "--out", "p.csv")
    assert refused.code == 2 and "have a network of their own" in refused.err


DATA = Path(__file__).parents[3] / "shared/data"


@pytest.mark.skipif(not (DATA / "pneumonia-28").is_dir(), reason="no real pictures beside this")
def test_three_sites_of_public_pictures_have_other_patients_and_each_picture_once(surgagg):
    given = [*(DATA / name for name in ("nih-1k", "nih-mini")), DATA / "pneumonia-28"]
    output = surgagg.example("real_sites.py", *given[:2], given[2] / "pneumoniamnist.npz", "real")
    assert output.startswith("real/real.yaml\nreal/128/halves.yaml\nsurgagg")
    for body in ("real/initial.npz", "real/128/initial.npz"):
        (surgagg.home / body).touch()
    data, large = (read_data(surgagg.home / name) for name in output.split()[:2])
    assert data.site_names == ("north", "south", "children") and data.folds == 5
    assert large.site_names == ("north", "south") and large.folds == 3
    halves = [load_labels(read_site_file(path)).table for path in large.sources.values()]
    assert sum(map(len, halves)) == 720  # those of 64 pixels would be enlarged
    sites = {name: load_labels(read_site_file(path)) for name, path in data.sources.items()}
    check_disjoint(sites.values())
    north, south, children = (labels.table for labels in sites.values())
    images = pd.concat([north, south])["image"]
    assert len(images) == images.nunique() == 1713 and len(children) == 750
    shared = {"Pneumonia", "Pleural Effusion", "Infiltration"}
    assert set(classes(north)) & set(classes(south)) == shared
    assert set(classes(children)) == {"Pneumonia"} and children["patient"].nunique() == 750
    for labels in (sites["north"], sites["children"]):
        assert repeated_images(labels.site, labels.table) == []
    truth = pd.read_csv(surgagg.home / "real/truth.csv")
    assert set(truth["image"]) == set(images) and "Hernia" in truth
