"""Create a site: a site file and a split, from an official download or a hospital's own csv."""

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
from cxr_study.data.labels.class_overlap import open_decisions, unknown_names
from cxr_study.data.labels.label_table import UNCERTAIN, classes, describe_one_sided
from cxr_study.data.labels.merges import contradicting_parts
from cxr_study.data.labels.uncertain_labels import apply_policy
from cxr_study.data.readers import mimic, nih, official_files
from cxr_study.data.sites import patient_split
from cxr_study.data.sites.own_table import find_csv, find_images, inspect_csv, write_index
from cxr_study.data.sites.site_data import (
    estimate_bits,
    find_files,
    labelled_classes,
    load_labels,
    read_labels,
    select_views,
    site_classes,
)
from cxr_study.data.sites.site_file import SiteFile, read_site_file, write_site_file
from cxr_study.data.sites.split_file import counts, replaced_files, write_split

Say = Callable[[str], None]
"""Callback that prints a line for people."""


def make_site(
    dataset: str,
    folder: Path,
    path: Path,
    given: Mapping[str, Any],
    *,
    images_by: str | None,
    seed: int,
    say: Say,
) -> SiteFile:
    """Write a site file for a data set, and split its patients 70/10/20.

    Args:
        dataset: Name of the data set; "table" is a hospital's own csv.
        folder: Folder of the official download; or a hospital's own csv, or its folder.
        path: The site file to write. After an error, no file is left.
        given: Keys of the site file -> values that a person gives; None: not given.
        images_by: DICOM keyword of the number by which an own csv names images. None: by path.
        seed: Random seed of the split.
        say: Prints what was found and decided, a line each.

    Returns:
        The site file, as read back.

    Raises:
        ValueError: The files cannot be read, or facts are missing.
    """
    index = path.with_name(f"{path.stem}_images.csv")
    split = path.with_name(f"{path.stem}_split.csv")
    if dataset == "table":
        csv, metadata = find_csv(folder), None
        images = folder if folder.is_dir() else csv.parent
    else:
        csv, metadata, images = official_files(dataset, folder)
    keys: dict[str, Any] = {
        **{"dataset": dataset, "labels": csv, "metadata": metadata, "images": images},
        **{"split": split, **{key: value for key, value in given.items() if value is not None}},
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
                f"none of the {len(table)} images of these labels are below {site.images}, first "
                f"{table['image'][0]}. Put the images there, or link them."
            )
        keys |= _decided(site, table, say)
        site = _written(path, keys)
        split_site(site, Fraction(1), seed, say=say)
        labels = load_labels(site)
        if bits := estimate_bits(labels):
            say(f"bits       {bits} of 16 in 16-bit images, by a sample of them (bits: {bits})")
            site = _written(path, keys | {"bits": bits})
    except ValueError:
        for file in (path, split, *([index] if images_by else [])):
            file.unlink(missing_ok=True)
        with suppress(OSError):
            path.parent.rmdir()  # if it is empty
        raise
    say(f"site file  {path}")
    for line in repeated_images(site, table):
        say(line)
    named = [site_classes(site, labels.read)]
    for line in open_decisions(named):
        say(line)
    if site.findings and unknown_names(named):
        say(
            "listed     texts that are not classes: --word '<text>=No Finding' for the absence of "
            f"findings, --word '<text>=' to leave one out (remove {path} first)"
        )
    return site


def repeated_images(site: SiteFile, table: pd.DataFrame) -> list[str]:
    """Describe images of a site that have the same file content under several names.

    Args:
        site: Its site file.
        table: Its label table as read.

    Returns:
        Lines for people; empty if there are no such images.
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
        "           a run refuses them: remove their rows, or have them left out with "
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
    """Split the patients of a site, write the split file, and print the counts.

    Args:
        site: Its site file; the key `split` names the file to write.
        share: Share of the training patients to use; the others become unused.
        seed: Random seed of the split.
        ratios: Patients in train, validation and test, separated by slashes.
        nih_lists: NIH's official lists, `train_val_list.txt` and `test_list.txt`, used instead of
            `ratios`.
        mimic_split: MIMIC's official csv, used instead of `ratios`.
        say: Prints what is in the splits, and classes that a split lacks, a line each.

    Raises:
        ValueError: The labels cannot be read, or cannot be split in this way.
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
        assignment = patient_split.subsample_training(assignment, table, float(share), seed=seed)
        scheme += f"; {share} of the training patients used"
    write_split(assignment, table, site.split, scheme=scheme, seed=seed)
    for name, part in counts(assignment, table).items():
        images = f"{part['images']:,} images ({part['images'] / len(table):.0%})"
        say(f"{name:10}  {part['patients']:,} patients, {images}")
    say(f"split      {site.split}")
    if kept := replaced_files(site.split):
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
    for line in (*describe_one_sided(trained), *missing):
        say(f"  {line}")


def _written(path: Path, keys: Mapping[str, Any]) -> SiteFile:
    """Write a site file and read it back, which checks it."""
    write_site_file(path, **keys)
    return read_site_file(path)


def _own_table(
    site: SiteFile, folder: Path, images_by: str | None, index: Path, say: Say
) -> dict[str, Any]:
    """Keys of the site file that follow from a hospital's own csv and its images; prints them."""
    columns, table, found = inspect_csv(site, images_by is not None)
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
    """Keys of the site file for default decisions about labels; prints them."""
    labelled = labelled_classes(site, classes(table))
    keys: dict[str, Any] = {}
    if uncertain := int((table[list(labelled)] == UNCERTAIN).to_numpy().sum()):
        say(f"uncertain  {uncertain:,} labels, which count as negative (uncertain: zeros)")
        keys["uncertain"] = "zeros"
    if site.dataset == "padchest":
        against = contradicting_parts(table, blank_is_negative=True)
        keys["merges"] = {name: list(against[name]) for name in labelled if name in against}
        for name, parts in keys["merges"].items():
            say(f"merged     {name}: {', '.join(parts)}")
    return keys
