"""A new site: from an official download or a hospital's own csv to a site file and a split."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd

from cxr_study.common.errors import InputError
from cxr_study.common.wording import counted
from cxr_study.data.images.image_files import repeated
from cxr_study.data.labels.class_overlap import undecided, unknown
from cxr_study.data.labels.label_table import UNCERTAIN, apply_policy, classes, one_sided
from cxr_study.data.labels.merges import parts_against
from cxr_study.data.readers import mimic, nih, official_files
from cxr_study.data.sites import patient_split
from cxr_study.data.sites.own_table import find_csv, find_images, look, write_index
from cxr_study.data.sites.site_data import (
    find_files,
    labelled_classes,
    read_labels,
    select_views,
    site_classes,
)
from cxr_study.data.sites.site_file import SiteFile, read_site_file, write_site_file
from cxr_study.data.sites.split_file import counts, earlier, write_split

Say = Callable[[str], None]
"""Receives a line for people."""


def make_site(
    dataset: str,
    folder: Path,
    path: Path,
    said: Mapping[str, Any],
    *,
    images_by: str | None,
    seed: int,
    say: Say,
) -> SiteFile:
    """Write a site file for a data set, and split its patients 70/10/20.

    Args:
        dataset: One of the readers.
        folder: Of the official download; or a hospital's own csv, or its folder.
        path: The site file; nothing of it is left where something is wrong.
        said: Keys of the site file that a person gives; None is none.
        images_by: DICOM keyword of the number by which an own csv names its images. None: by path.
        seed: Of the split.
        say: Is given what was found and decided.

    Raises:
        ValueError: The files do not tell what a site needs to know, or cannot be read.
    """
    index = path.with_name(f"{path.stem}_images.csv")
    split = path.with_name(f"{path.stem}_split.csv")
    if dataset == "table":
        labels, metadata = find_csv(folder), None
        images = folder if folder.is_dir() else labels.parent
    else:
        labels, metadata, images = official_files(dataset, folder)
    keys: dict[str, Any] = {
        **{"dataset": dataset, "labels": labels, "metadata": metadata, "images": images},
        **{"split": split, **{key: value for key, value in said.items() if value is not None}},
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        site = _written(path, keys)
        if dataset == "table":
            keys |= _own_table(site, keys["images"], images_by, index, say)
            site = _written(path, keys)
        table = read_labels(site)
        if not any(find_files(site, table["image"])):
            raise InputError(
                f"none of the {len(table)} images of these labels lie below {site.images}, first "
                f"{table['image'][0]}. Put the images there, or link them."
            )
        site = _written(path, keys | _decided(site, table, say))
        split_site(site, Fraction(1), seed, say=say)
    except ValueError:
        for file in (path, split, *([index] if images_by else [])):
            file.unlink(missing_ok=True)
        with suppress(OSError):
            path.parent.rmdir()  # where nothing else is in it
        raise
    say(f"site file  {path}")
    for line in repeated_images(site, table):
        say(line)
    named = [site_classes(site, read_labels(site))]
    for line in undecided(named):
        say(line)
    if site.findings and unknown(named):
        say(
            "listed     what is no class: --word '<text>=No Finding' says that nothing is found, "
            f"--word '<text>=' leaves it out (remove {path} first)"
        )
    return site


def repeated_images(site: SiteFile, table: pd.DataFrame) -> list[str]:
    """Lines about images of a site that are one file under several names; none where none is.

    Args:
        site: The site.
        table: Its label table as read.
    """
    again = repeated(table["image"], find_files(site, table["image"]))
    if not again:
        return []
    patient = table.set_index("image")["patient"]
    of_others = sum(patient[image] != patient[first] for image, first in again.items())
    image, first = next(
        (pair for pair in again.items() if patient[pair[0]] != patient[pair[1]]),
        next(iter(again.items())),
    )
    return [
        f"repeated   {counted(len(again), 'image')} of other names, the same file, "
        f"{of_others} of another patient; first {image} (patient {patient[image]}) and {first} "
        f"(patient {patient[first]})",
        "           a run refuses them: remove their rows, or let it leave them out by "
        f"'bad_images: {len(again)}' in the site file",
    ]


def split_site(
    site: SiteFile,
    share: Fraction,
    seed: int,
    ratios: str = "70/10/20",
    nih_lists: tuple[Path, Path] | None = None,
    mimic_split: Path | None = None,
    *,
    say: Say,
) -> None:
    """Split the patients of a site, and say how many are where.

    Args:
        site: Its key `split` says where to write.
        share: Of the training patients to use.
        seed: Of the split.
        ratios: Of patients in train, validation and test.
        nih_lists: NIH's official lists instead, `train_val_list.txt` and `test_list.txt`.
        mimic_split: MIMIC's official csv instead.
        say: Is given what is in the splits, and what they lack.

    Raises:
        ValueError: The labels cannot be read or split so.
    """
    table = select_views(site, read_labels(site))
    if nih_lists is not None:
        parts = nih.official_lists(*nih_lists).set_index("image")["part"]
        assignment = patient_split.split_by_lists(table, parts, seed=seed)
        scheme = "NIH's official lists; 1/8 of train_val's patients validate"
    elif mimic_split is not None:
        assignment = mimic.official_split(mimic_split)
        scheme = "MIMIC's official split"
    else:
        fractions = [float(part) for part in ratios.split("/")]
        fractions = [part / sum(fractions) for part in fractions]
        assignment = patient_split.split_patients(table, seed=seed, fractions=fractions)
        scheme = f"{ratios} {patient_split.SCHEME}"
    if share < 1:
        assignment = patient_split.thin(assignment, table, float(share), seed=seed)
        scheme += f"; {share} of the training patients used"
    write_split(assignment, table, site.split, scheme=scheme, seed=seed)
    for name, part in counts(assignment, table).items():
        images = f"{part['images']:,} images ({part['images'] / len(table):.0%})"
        say(f"{name:10}  {part['patients']:,} patients, {images}")
    say(f"split      {site.split}")
    if kept := earlier(site.split):
        say(f"earlier    {kept[-1]}")
    for note in table.attrs["notes"]:
        say(f"note       {note}")
    labelled = labelled_classes(site, classes(table))
    rows = table["patient"].map(assignment.set_index("patient")["split"]) == "train"
    policy = replace(site.policy, blank=site.policy.blank or "not labelled")
    trained = apply_policy(table.loc[rows, ["image", *labelled]], policy)
    for name in labelled:
        positive, negative = (trained[name] > 0.5).sum(), (trained[name] < 0.5).sum()
        say(f"training   {name}: {positive:,} positive, {negative:,} negative")
    missing = patient_split.without_positives(assignment, table, labelled)
    for line in (*one_sided(trained), *missing):
        say(f"  {line}")


def _written(path: Path, keys: Mapping[str, Any]) -> SiteFile:
    write_site_file(path, **keys)
    return read_site_file(path)


def _own_table(
    site: SiteFile, folder: Path, images_by: str | None, index: Path, say: Say
) -> dict[str, Any]:
    """Keys that a look at a hospital's own csv and its images gives, and says so."""
    columns, table, found = look(site, images_by is not None)
    for line in found:
        say(line)
    keys: dict[str, Any] = {
        "columns": {name: kind for name, kind in columns.items() if name.casefold() != kind} or None
    }
    if images_by is not None:
        say(f"images     {write_index(folder, images_by, index)}")
        return keys | {"metadata": index}
    names = table["image"].tolist()
    folder, number = find_images(folder, names, site.nested)
    say(f"images     {number:,} of {len(names):,} below {folder}")
    return keys | {"images": folder}


def _decided(site: SiteFile, table: pd.DataFrame, say: Say) -> dict[str, Any]:
    """Keys of what is decided where nobody says otherwise, and says so."""
    labelled = labelled_classes(site, classes(table))
    keys: dict[str, Any] = {}
    if uncertain := int((table[list(labelled)] == UNCERTAIN).to_numpy().sum()):
        say(f"uncertain  {uncertain:,} labels, which count as negative (uncertain: zeros)")
        keys["uncertain"] = "zeros"
    if site.dataset == "padchest":
        against = parts_against(table, blank_is_negative=True)
        keys["merges"] = {name: list(against[name]) for name in labelled if name in against}
        for name, parts in keys["merges"].items():
            say(f"merged     {name}: {', '.join(parts)}")
    return keys
