"""Three hospitals from public images: NIH's split in two by patients, and children's pneumonia.

Usage: python real_sites.py <NIH folder>... <pneumoniamnist.npz> <new folder>

An NIH folder has `Data_Entry_2017*.csv` and any of its images; images and patients that occur in
two folders are used once. Writes site files, and data files for studies: all three hospitals in
five folds (`real`, `real-factors`, `real-two-by-two`, `real-last`, `real-rounds`); and, of the
folders whose images are large enough, NIH's halves in three folds of 128 pixels (`real-128`).
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import yaml
from PIL import Image

from cxr_studies.partition.partition import split_sites
from cxr_study.data.labels.label_table import classes as class_columns
from cxr_study.data.readers import nih, official_files
from cxr_study.data.sites.patient_split import split_patients
from cxr_study.data.sites.site_data import read_labels
from cxr_study.data.sites.site_file import read_site_file, write_site_file
from cxr_study.data.sites.split_file import write_split

SHARED = ("Pneumonia", "Pleural Effusion", "Infiltration")
CLASSES = {
    "north": (*SHARED, "Atelectasis", "Cardiomegaly", "Nodule", "Mass", "Emphysema"),
    "south": (*SHARED, "Edema", "Consolidation", "Pleural Thickening", "Fibrosis", "Pneumothorax"),
}
"""Classes of both halves of NIH; the third site's only class is Pneumonia."""

CHILDREN = 750
"""Number of children's images; five folds leave 525 for training."""


def write_halves(folders, out):
    """Write both NIH sites; `truth.csv` has the labels of all classes, for testing."""
    (out / "nih").mkdir(parents=True)
    tables = []
    for folder in folders:
        labels, _, images = official_files("nih", folder)
        there = {file.name: file for file in images.rglob("*.png")}
        rows = pd.read_csv(labels, dtype=str, na_filter=False, index_col=False)
        tables.append(rows[rows["Image Index"].isin(there)])
        for name in tables[-1]["Image Index"]:
            if not (out / "nih" / name).exists():
                (out / "nih" / name).symlink_to(there[name].absolute())
    whole = out / "nih.csv"
    rows = pd.concat(tables).drop_duplicates("Image Index")
    rows.to_csv(whole, index=False)
    labels = nih.read(whole)
    truth = out / "truth.csv"
    labels[["image", *class_columns(labels)]].to_csv(truth, index=False)
    cut = split_sites(labels, list(CLASSES), seed=0)
    for site, classes in CLASSES.items():
        own = cut[cut["site"] == site]
        csv, split = out / f"{site}.csv", out / f"{site}_split.csv"
        there = labels["patient"].isin(own["patient"])
        rows[rows["Image Index"].isin(labels["image"][there])].to_csv(csv, index=False)
        write_split(own[["patient", "split"]], nih.read(csv), split, scheme="70/10/20", seed=0)
        path = out / f"{site}.yaml"
        images = out / "nih"
        write_site_file(
            path, dataset="nih", labels=csv, images=images, split=split, truth=truth,
            classes=list(classes),
        )  # fmt: skip
        yield path


def write_children(npz, out):
    """Write the site `children`: each image counts as a patient, since the file has none."""
    (out / "children").mkdir()
    parts = np.load(npz)
    pictures, labels = (
        np.concatenate([parts[f"{split}_{what}"] for split in ("val", "test")])
        for what in ("images", "labels")
    )
    _, different = np.unique(pictures, axis=0, return_index=True)  # some are duplicates
    chosen = np.random.default_rng(0).permutation(np.sort(different))[:CHILDREN]
    names = [f"{number:04d}.png" for number in chosen]
    for name, number in zip(names, chosen, strict=True):
        Image.fromarray(pictures[number]).save(out / "children" / name)
    csv = out / "children" / "labels.csv"
    pneumonia = labels[chosen, 0].astype(int)
    pd.DataFrame({"image": names, "Pneumonia": pneumonia}).to_csv(csv, index=False)
    path, split = out / "children.yaml", out / "children_split.csv"
    write_site_file(
        path, dataset="table", labels=csv, images=csv.parent, split=split,
        patients="each-image", blank="negative",
    )  # fmt: skip
    table = read_labels(read_site_file(path))
    write_split(split_patients(table, seed=0), table, split, scheme="70/10/20", seed=0)
    return path


def large(folder, pixels):
    """Whether the folder's images have at least so many pixels a side, judged by one of them."""
    _, _, images = official_files("nih", folder)
    first = next(images.rglob("*.png"), None)
    return first is not None and min(Image.open(first).size) >= pixels


def write_data_file(path, sites, **keys):
    """Write a data file for `surgagg study run`."""
    names = [str(site.relative_to(path.parent)) for site in sites]
    text = yaml.safe_dump({"sites": names, **keys}, sort_keys=False)
    path.write_text(text, encoding="utf-8")
    print(path)


def main(*given):
    """Write everything; see the module."""
    *folders, npz, out = map(Path, given)
    sites = [*write_halves(folders, out), write_children(npz, out)]
    files = [("real.yaml", sites, 64, 5)]
    if enough := [folder for folder in folders if large(folder, 128)]:
        halves = list(write_halves(enough, out / "128"))
        files.append(("128/halves.yaml", halves, 128, 3))
    network = {"backbone": "efficientnet_lite0", "batch_size": 32}
    for name, those, pixels, folds in files:
        write_data_file(
            out / name, those, folds=folds, initial_body="initial.npz", preset="radiology",
            settings={**network, "image_size": pixels},
        )  # fmt: skip
    for name, _, pixels, _ in files:
        body = f"{(out / name).with_name('initial.npz')} --image-size {pixels}"
        print(f"surgagg model init {body} --backbone efficientnet_lite0 --weights imagenet")
    print(f"surgagg study run real --data {out / 'real.yaml'}")


if __name__ == "__main__":
    main(*sys.argv[1:])
