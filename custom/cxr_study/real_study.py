"""Cut the real NIH ChestX-ray14 into sites that label different classes."""

import csv
from pathlib import Path

import pandas as pd

from cxr_study.class_sets import PUBLISHED_CLIENTS
from cxr_study.csv_columns import open_csv
from cxr_study.images import locate
from cxr_study.readers import nih
from cxr_study.site_file import write_site_file
from cxr_study.split import split_patients, split_sites, write_split
from cxr_study.vocabulary import NIH_CLASSES


class StudyError(ValueError):
    """The data for a study are not where they should be."""


def write_nih_study(nih_dir: Path, out_dir: Path, *, seed: int, k: int = 2) -> list[Path]:
    """Write K site files over the NIH images at hand, with the published class sets.

    Patients are cut into K equal sites and, within each, 70/10/20 into train, validation and test,
    both stratified by "patient has any positive label". Each site gets the rows of the official
    csv for its images, and as `truth` all 14 labels of them, so that classes it does not hold can
    be scored there. Nothing is copied but labels.

    Args:
        nih_dir: Folder with `Data_Entry_2017*.csv` (or `.csv.gz`) and the images, in `images` or at
            any depth; rows without an image file are left out.
        out_dir: Receives `sites/nih-1.yaml`, ... and the csv files they name.
        seed: Seed of the cut and the splits.
        k: Number of sites, one of the published ones.

    Returns:
        The site files.

    Raises:
        StudyError: There is no csv, more than one, none of its images, or no published class set
            for K sites.
        TableError: The csv does not hold what NIH promises.
        SplitError: There are too few patients.
    """
    nih_dir, out_dir = Path(nih_dir), Path(out_dir)
    if k not in PUBLISHED_CLIENTS:
        known = ", ".join(str(sites) for sites in PUBLISHED_CLIENTS)
        raise StudyError(f"class sets are published here for K = {known}; got K = {k}.")
    labels = _labels_csv(nih_dir)
    images = nih_dir / "images" if (nih_dir / "images").is_dir() else nih_dir
    table = nih.read(labels)
    there = [file is not None for file in locate(images, table["image"])]
    if not any(there):
        raise StudyError(
            f"none of the {len(table)} images that {labels} lists lie below {images}, first "
            f"{table['image'][0]}. Put the images into {nih_dir / 'images'}, or link them there."
        )
    sites = out_dir / "sites"
    sites.mkdir(parents=True, exist_ok=True)
    parts = split_sites(table[there].reset_index(drop=True), k, seed=seed)
    written = []
    for number, (part, classes) in enumerate(
        zip(parts, PUBLISHED_CLIENTS[k], strict=True), start=1
    ):
        stem = f"nih-{number}"
        site_labels, split, truth = (
            sites / f"{stem}_{what}.csv" for what in ("labels", "split", "truth")
        )
        _copy_rows(labels, site_labels, set(part["image"]))
        write_split(split_patients(part, seed=seed), split)
        _write_truth(part, truth)
        written.append(sites / f"{stem}.yaml")
        write_site_file(
            written[-1],
            dataset="nih",
            labels=site_labels,
            images=images,
            split=split,
            classes=classes,
            truth=truth,
        )
    return written


def _labels_csv(nih_dir: Path) -> Path:
    found = sorted(
        [*nih_dir.glob("Data_Entry_2017*.csv"), *nih_dir.glob("Data_Entry_2017*.csv.gz")]
    )
    if len(found) != 1:
        names = ", ".join(path.name for path in found) or "none"
        raise StudyError(
            f"needs one Data_Entry_2017*.csv in {nih_dir}; found {names}. "
            "Give the folder that holds NIH's label csv and its images."
        )
    return found[0]


def _copy_rows(source: Path, target: Path, images: set[str]) -> None:
    with open_csv(source) as official, target.open("w", encoding="utf-8", newline="") as copy:
        reader, writer = csv.reader(official), csv.writer(copy, lineterminator="\n")
        header = next(reader)
        writer.writerow(header)
        image = [name.strip() for name in header].index("Image Index")
        writer.writerows(row for row in reader if row and row[image].strip() in images)


def _write_truth(part: pd.DataFrame, target: Path) -> None:
    truth = part[["image", *NIH_CLASSES]].astype({name: int for name in NIH_CLASSES})
    truth.to_csv(target, index=False, lineterminator="\n")
