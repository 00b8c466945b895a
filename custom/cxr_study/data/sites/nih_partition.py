"""Cut the real NIH ChestX-ray14 into sites that label different classes."""

import csv
from pathlib import Path

from cxr_study.data.images.image_files import locate
from cxr_study.data.labels.class_sets import published
from cxr_study.data.labels.csv_columns import open_csv
from cxr_study.data.readers import nih
from cxr_study.data.readers.official_files import official_files
from cxr_study.data.sites.partition import write_sites
from cxr_study.data.sites.site_file import read_site_file, write_site_file


class StudyError(ValueError):
    """The data for a study are not where they should be."""


def write_nih_study(nih_dir: Path, out_dir: Path, *, seed: int, k: int = 2) -> list[Path]:
    """Write K site files over the NIH images at hand, with the published class sets.

    Any part of the images will do: of the official csv the rows with an image are used, and copied
    where they are not all. See `site_cut.write_sites` for the cut.

    Args:
        nih_dir: Folder with `Data_Entry_2017*.csv` (or `.csv.gz`) and the images, in `images` or at
            any depth.
        out_dir: Receives `nih.yaml`, the data at hand, and the sites in `sites/`.
        seed: Seed of the cut and the splits.
        k: Number of sites, one of the published ones.

    Returns:
        The site files.

    Raises:
        StudyError: None of the images is there.
        ValueError: There is no csv, or it is not NIH's, no class set is published for K sites, or
            there are too few patients.
    """
    class_sets = published(k)
    pool = write_nih_pool(nih_dir, out_dir)
    return write_sites(read_site_file(pool), out_dir / "sites", class_sets, seed=seed)


def write_nih_pool(nih_dir: Path, out_dir: Path) -> Path:
    """Write a site file of the NIH images at hand, without a split.

    Args:
        nih_dir: See `write_nih_study`.
        out_dir: Receives `nih.yaml`, and the csv where it lists images that are not there.

    Returns:
        The site file.

    Raises:
        StudyError: None of the images is there.
        ValueError: There is no csv, or it is not NIH's.
    """
    labels, _, images = official_files("nih", nih_dir)
    table = nih.read(labels)
    there = table["image"][[file is not None for file in locate(images, table["image"])]]
    if there.empty:
        raise StudyError(
            f"none of the {len(table)} images that {labels} lists lie below {images}, first "
            f"{table['image'][0]}. Put the images into {nih_dir / 'images'}, or link them there."
        )
    out_dir.mkdir(parents=True, exist_ok=True)
    if len(there) < len(table):
        labels = _copy_rows(labels, out_dir / "labels.csv", set(there))
    pool = out_dir / "nih.yaml"
    write_site_file(
        pool, dataset="nih", labels=labels, images=images, split=out_dir / "sites" / "split.csv"
    )
    return pool


def _copy_rows(source: Path, target: Path, images: set[str]) -> Path:
    with open_csv(source) as official, target.open("w", encoding="utf-8", newline="") as copy:
        reader, writer = csv.reader(official), csv.writer(copy, lineterminator="\n")
        header = next(reader)
        writer.writerow(header)
        image = [name.strip() for name in header].index("Image Index")
        writer.writerows(row for row in reader if row and row[image].strip() in images)
    return target
