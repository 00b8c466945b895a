"""Cut one data set into sites that have different patients and label different classes."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from cxr_studies.partition.class_sets import ClassSets, check_known
from cxr_studies.partition.dealing import deal, rarest_findings
from cxr_studies.partition.skew import Skew
from cxr_study.common.errors import InputError
from cxr_study.data.images.image_files import ImageError, locate
from cxr_study.data.labels.label_table import POSITIVE
from cxr_study.data.labels.label_table import classes as class_columns
from cxr_study.data.labels.uncertain_labels import apply_policy, certain
from cxr_study.data.readers import nih, official_files
from cxr_study.data.sites.patient_split import (
    SPLITS,
    positive_patients,
    shuffled,
    split_patients,
    stratified,
    subsample_training,
    without_positives,
)
from cxr_study.data.sites.site_data import read_labels, select_views
from cxr_study.data.sites.site_file import SiteFile, write_site_file
from cxr_study.data.sites.split_file import write_split

__all__ = ["split_sites"]


def write_sites(
    pool: SiteFile,
    folder: Path,
    class_sets: ClassSets,
    *,
    seed: int,
    share: float = 1.0,
    skew: Skew | None = None,
) -> dict[Path, list[str]]:
    """Write K site files over the data of one, and their common split file.

    Patients are put into train, validation and test, and each of these is cut into K sites, see
    `split_sites`: the test patients of all sites together are those of `split_patients` with the
    same seed, whatever K is. Each site labels its own classes; `truth.csv` has the labels of all
    classes, so that the others can be scored too. The split file's header has the site's patients
    and images in each split, and, of every class, the patients that are positive and used.

    Args:
        pool: Site file of the whole data set; its split is not used.
        folder: Receives `<pool>-1.yaml`, ..., `split.csv` and `truth.csv`.
        class_sets: Classes of each site.
        seed: Of the splits and the cut.
        share: Of each site's training patients, to be used.
        skew: How sites differ; None: they have equally many patients with equal findings.

    Returns:
        Each site file, and which of the site's splits have no patient with which of its classes.

    Raises:
        InputError: The labels do not have a class, or there are too few patients.
        ValueError: The site file, or what it names, is unusable.
    """
    table = select_views(pool, read_labels(pool))
    check_known(class_sets, class_columns(table))
    names = [f"{pool.site}-{number}" for number in range(1, len(class_sets) + 1)]
    assignment = split_sites(table, names, seed=seed, skew=skew)
    scheme = f"{len(names)} sites with {skew or 'equally many patients'}, each 70/10/20"
    if share < 1:
        assignment = subsample_training(assignment, table, share, seed=seed)
        scheme += f"; {share:.3g} of the training patients used"
    folder.mkdir(parents=True, exist_ok=True)
    split, truth = folder / "split.csv", folder / "truth.csv"
    positives = positive_counts(assignment, table)
    write_split(assignment, table, split, scheme=scheme, seed=seed, positives=positives)
    labels = apply_policy(table, pool.policy).set_index("image")[class_columns(table)]
    certain(labels).to_csv(truth, lineterminator="\n", float_format="%g")
    written = {}
    for name, labelled in zip(names, class_sets, strict=True):
        path = folder / f"{name}.yaml"
        own = assignment[assignment["site"] == name]
        written[path] = without_positives(own, table, labelled)
        write_copy(pool, path, labelled, split, truth)
    return written


def positive_counts(assignment: pd.DataFrame, table: pd.DataFrame) -> dict[str, dict[str, int]]:
    """Number of patients with a positive label, by site and class.

    Args:
        assignment: Site and split of each patient, with the columns patient, site and split.
        table: Label table as read.

    Returns:
        Site -> class -> patients with any positive label of it; unused patients do not count.
    """
    used = assignment[assignment["split"].isin(SPLITS)].set_index("patient")["site"]
    has = (table[class_columns(table)] == POSITIVE).groupby(table["patient"]).any()
    return has.groupby(used).sum().to_dict("index")


def split_sites(
    table: pd.DataFrame, sites: Sequence[str], *, seed: int, skew: Skew | None = None
) -> pd.DataFrame:
    """Put every patient in one split, as `split_patients` does, and cut each split into sites.

    The test patients of all sites together are therefore the same for any number of sites. In each
    split and altogether, sites' numbers of patients differ by one at most; in each split also
    their numbers of positive patients. With a skew they differ as `Skew` describes, alike in each
    split.

    Args:
        table: Label table as read.
        sites: Names of the sites.
        seed: Of split and cut.
        skew: How sites differ in size or findings; None: not at all.

    Returns:
        Columns patient, site and split, sorted by patient.

    Raises:
        InputError: There are too few patients to give each split of each site one.
    """
    split = split_patients(table, seed=seed).set_index("patient")["split"]
    cut = pd.DataFrame({"patient": shuffled(table, seed)})
    cut["split"] = cut["patient"].map(split)
    for name, number in cut["split"].value_counts().items():
        if number < len(sites):
            raise InputError(
                f"split '{name}' has {number} of the {len(cut)} patients for {len(sites)} sites; "
                "needs more patients or fewer sites."
            )
    cut["positive"] = cut["patient"].map(positive_patients(table))
    if skew is not None:
        cut["group"] = cut["patient"].map(rarest_findings(table)) if skew.by == "label" else ""
        cut["site"] = np.array(sites)[deal(cut, len(sites), skew, seed)]
    else:
        # Each stratum of each split in turn is dealt out to the sites like cards, so they get equal
        # numbers of it. Patients are then exchanged so that the classes are balanced.
        cut = cut.sort_values(["split", "positive"], kind="stable")
        cut["site"] = np.resize(sites, len(cut))
        for _, dealt in cut.groupby("split"):
            parts = [dealt["patient"][dealt["site"] == site].to_numpy() for site in sites]
            moved = stratified(table, parts, seed)
            whose = {p: site for site, part in zip(sites, moved, strict=True) for p in part}
            cut.loc[dealt.index, "site"] = dealt["patient"].map(whose)
    cut = cut.sort_values("patient", ignore_index=True)
    return cut[["patient", "site", "split"]]


def write_copy(
    site: SiteFile, path: Path, classes: Sequence[str], split: Path, truth: Path | None = None
) -> None:
    """Write a site file of the same data and decisions with other classes, split and truth.

    Args:
        site: Site file that is copied.
        path: File to write.
        classes: Those that the copy lists. Policies and distinctions of other classes are left out.
        split: Split file of the copy.
        truth: File with the labels of all classes, for evaluation; None: there is none.
    """
    by_class = {name: policy for name, policy in site.policy.by_class.items() if name in classes}
    distinct = [name for name in site.distinct if name in classes]
    changed = {
        "split": split,
        "truth": truth,
        "classes": list(classes),
        "distinct": distinct or None,
        "uncertain": {"default": site.policy.uncertain, **by_class},
        "blank": site.policy.blank,
    }
    write_site_file(path, **{**site.model_dump(exclude_defaults=True), **changed})


def write_nih_pool(nih_dir: Path, out_dir: Path) -> Path:
    """Write a site file, without a split, of the NIH images that are present, all or some.

    Args:
        nih_dir: Folder with `Data_Entry_2017*.csv` (or `.csv.gz`) and the images, in `images` or at
            any depth.
        out_dir: Receives `nih.yaml`, and a csv of the images that are present where some are
            missing.

    Returns:
        Path of `nih.yaml`.

    Raises:
        ImageError: None of the images is there.
        ValueError: There is no csv, or it is not NIH's.
    """
    labels, _, images = official_files("nih", nih_dir)
    table = nih.read(labels)
    there = table["image"][[file is not None for file in locate(images, table["image"])]]
    if there.empty:
        raise ImageError(
            f"none of the {len(table)} images that {labels} lists lie below {images}, first "
            f"{table['image'][0]}. Put the images into {nih_dir / 'images'}, or link them there."
        )
    out_dir.mkdir(parents=True, exist_ok=True)
    if len(there) < len(table):
        rows = pd.read_csv(labels, dtype=str, na_filter=False, index_col=False)
        rows = rows[rows["Image Index"].str.strip().isin(there)]
        labels = out_dir / "labels.csv"
        rows.to_csv(labels, index=False, lineterminator="\n")
    pool = out_dir / "nih.yaml"
    write_site_file(
        pool, dataset="nih", labels=labels, images=images, split=out_dir / "sites" / "split.csv"
    )
    return pool
