"""A site's labels and pixels, as its site file says; what is said of several before training."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd

from cxr_study.common import progress
from cxr_study.common.errors import InputError
from cxr_study.common.spelling import nearest
from cxr_study.data import readers
from cxr_study.data.images import image_store
from cxr_study.data.images.image_files import locate
from cxr_study.data.images.image_store import Images
from cxr_study.data.labels import merges
from cxr_study.data.labels.class_overlap import SiteClasses, holders, near_duplicates
from cxr_study.data.labels.label_table import DESCRIPTORS, FRONTAL, apply_policy, classes, one_sided
from cxr_study.data.readers import dataset_of
from cxr_study.data.readers.table import plain
from cxr_study.data.sites.own_table import join
from cxr_study.data.sites.patient_split import UNUSED
from cxr_study.data.sites.site_file import SiteFile
from cxr_study.data.sites.split_file import SplitFile, apply_split, read_split
from surgical_aggregation.aggregation.class_names import twins, unfit

__all__ = ["load_images", "load_labels", "read_labels"]

CONTRADICTION = "contradiction"
"""Status of an image that is not what it should be, at a site that refuses such images."""


@dataclass(frozen=True, eq=False)
class SiteLabels:
    """A site's labels.

    Attributes:
        read: Label table as read: all rows and classes of the data set, merges made.
        table: Label table to train with: the site's rows, views and classes, policies applied, with
            `split` (one of `patient_split.SPLITS`, or unused) and `file` (absolute path, "" where
            there is none) behind the classes.
    """

    site: SiteFile
    read: pd.DataFrame
    table: pd.DataFrame


def read_labels(site: SiteFile) -> pd.DataFrame:
    """Read a site's csv files as a label table and make the merges.

    Its `attrs["notes"]` are what the reader made of the files, for people; and where an image is
    negative for a class and positive for a part of it.

    Raises:
        InputError: A csv does not hold what the dataset promises.
        InputError: A merge is not possible, or not allowed.
    """
    table = readers.read(site.dataset, site.labels, site.metadata, site, site.images)
    if site.dataset == "table" and site.metadata is not None:
        table = join(table, site.metadata)
    try:
        table = merges.apply(table, site.merges, site.dataset)
    except InputError as error:
        raise InputError(f"{site.path}: key 'merges': {error}") from None
    labelled = site.classes or dataset_of(site.dataset).default_classes or classes(table)
    against = merges.parts_against(table, site.policy.blank == "negative")
    table.attrs["notes"] += [
        f"{sum(parts.values()):,} labels of {name} are negative where a part of it is positive "
        f"({', '.join(f'{part} {n:,}' for part, n in parts.items())}); to merge them: "
        f"'merges: {{{name}: [{', '.join(parts)}]}}'"
        for name, parts in against.items()
        if name in labelled
    ]
    return table


def find_files(site: SiteFile, images: Iterable[str]) -> list[Path | None]:
    """Find the files of a site's images, see `image_files.locate`.

    Raises:
        ImageError: Two files could be one of the images.
    """
    return locate(site.images, images, dataset_of(site.dataset).identifying, site.nested)


def select_views(site: SiteFile, table: pd.DataFrame) -> pd.DataFrame:
    """Keep the rows of the views the site uses, which are split.

    Raises:
        InputError: None is left.
    """
    if site.views == "all":
        return table
    frontal = table[table["view"].isin(FRONTAL)].reset_index(drop=True)
    if frontal.empty:
        views = ", ".join(sorted({view or "unknown" for view in table["view"]}))
        raise InputError(
            f"{site.path}: none of the {len(table)} images is known to be frontal; their views are "
            f"{views}. Say 'views: all' to use them (--views all)."
        )
    return frontal


def load_labels(site: SiteFile) -> SiteLabels:
    """Read a site's labels, select its rows and classes, apply its policies and find its images.

    Raises:
        InputError: The labels or the split file do not hold what their format promises.
        InputError: The split does not fit the labels, or has a patient twice.
        InputError: A class, merge or policy does not fit the data set.
        InputError: There are blank labels and the site file does not say what they mean.
        ImageError: Image files cannot be told apart.
    """
    if not site.split.is_file():
        raise InputError(
            f"{site.path}: key 'split' needs a file that exists (looked for {site.split}). "
            f"Make it: surgagg data split {site.path}"
        )
    split = read_split(site.split)
    site, kept = _as_split(site, split)
    read = read_labels(site)
    read.attrs["notes"] += kept
    rows = apply_split(split, select_views(site, read), site.site)
    labelled = labelled_classes(site, classes(read))
    table = rows[[*DESCRIPTORS, *labelled, "split"]].copy()
    try:
        table = apply_policy(table, site.policy)
    except InputError as error:
        raise InputError(f"{site.path}: {', '.join(map(str, site.labels))}: {error}") from None
    table["file"] = ["" if file is None else str(file) for file in find_files(site, table["image"])]
    return SiteLabels(site, read, table)


def _as_split(site: SiteFile, split: SplitFile) -> tuple[SiteFile, list[str]]:
    """A site whose split keeps spellings of a patient apart reads them so; and a note of that."""
    if site.dataset != "table" or site.patients is not None:
        return site, []
    assignment = split.assignment
    splits = assignment.groupby(assignment["patient"].map(plain))["split"]
    several = int((splits.size() > 1).sum())
    if not several:
        return site, []
    note = (
        f"the split {site.split} keeps {several:,} patients apart who are written in several ways; "
        f"{(splits.nunique() > 1).sum():,} are in more than one split. It stays as it is; another: "
        f"surgagg data split {site.path}"
    )
    return site.model_copy(update={"patients": "exact"}), [note]


def prepare(
    labels: SiteLabels, size: int, report: Callable[[int, int], None] | None = None
) -> tuple[pd.DataFrame, image_store.Prepared]:
    """Decode a site's images; what is wrong with them is reported, not raised.

    Returns:
        The rows of the table that are in a split, and their images; `notes` of the index has what
        contradicts that an image is the radiograph that its row says. Where the site refuses such
        images, their status is `CONTRADICTION`.
    """
    site = labels.site
    table = labels.table[labels.table["split"] != UNUSED].reset_index(drop=True)
    prepared = image_store.prepare(
        site.images, table["image"], table["file"], size, bits=site.bits, progress=report
    )
    index = prepared.index.assign(notes=_notes(table, prepared.index))
    if site.contradictions == "refuse":
        refused = (index["status"] == "ok") & (index["notes"] != "")
        index.loc[refused, "detail"] = index["notes"][refused]
        index.loc[refused, ["status", "row"]] = (CONTRADICTION, -1)
    prepared = replace(prepared, index=index)
    image_store.list_problems(prepared)
    return table, prepared


def _notes(table: pd.DataFrame, index: pd.DataFrame) -> pd.Series:
    """What speaks against each usable image, its file's view included."""
    view, labelled = index["view"], table["view"]
    sure = view.isin(("PA", "AP")) & labelled.isin(("PA", "AP"))
    differ = (view != labelled).where(sure, view.isin(FRONTAL) != labelled.isin(FRONTAL))
    differ &= (view != "") & (labelled != "")
    said = (index["notes"] + "; view " + view + ", labelled " + labelled).str.removeprefix("; ")
    return index["notes"].mask(differ, said).where(index["status"] == "ok", "")


def load_images(labels: SiteLabels, size: int) -> Images:
    """A site's usable images of `size` x `size` pixels that are in a split, with a bar.

    They are decoded where they were not. Their table is that of the labels, with a RangeIndex.

    Raises:
        ImageError: More images are missing, unreadable, constant or duplicates than the site's
            `bad_images` allows; names some and the file that lists all.
    """
    site = labels.site
    with progress.bar(f"{site.site}: decoding images") as report:
        table, prepared = prepare(labels, size, report)
    image_store.check_limit(prepared, site.bad_images, f"{site.path}: key 'bad_images'")
    usable = np.flatnonzero(prepared.index["status"] == "ok")
    return Images(
        table.iloc[usable].reset_index(drop=True),
        prepared.pixels,
        prepared.index["row"].to_numpy()[usable],
        site.site,
        frozenset(classes(table)),
    )


def check_disjoint(sites: Iterable[SiteLabels]) -> list[str]:
    """Refuse sites that share a patient; data sets with different patient numbers cannot.

    Returns:
        Notes about hospitals' own tables, whose ids may be equal by chance.
    """
    notes = []
    for one, other in combinations(sites, 2):
        whose, others = (dataset_of(each.site.dataset).patients for each in (one, other))
        if not whose or not others or "each-image" in (one.site.patients, other.site.patients):
            continue
        certain = whose == others and (whose != "table" or one.site.labels == other.site.labels)
        if not certain and "table" not in (whose, others):
            continue
        ids = [each.table["patient"] for each in (one, other)]
        here, there = ids if certain else [each.map(plain) for each in ids]
        shared = sorted(set(here) & set(there))
        if shared and certain:
            raise InputError(
                f"a patient belongs to one site; {len(shared)} are at both {one.site.path} and "
                f"{other.site.path}, first {', '.join(shared[:3])}. Cut the patients into sites: "
                "surgagg data partition"
            )
        if shared:
            notes.append(
                f"{len(shared):,} patient ids are at both {one.site.site} and {other.site.site}, "
                f"first {', '.join(shared[:3])}; if that is no chance, leave these patients out at "
                "one of them"
            )
    return notes


def labelled_classes(site: SiteFile, known: Sequence[str]) -> tuple[str, ...]:
    """Names of the classes that a site labels, of those that its labels have after merges.

    Raises:
        InputError: The site file names a class that the labels do not have, or a class has a
            name that no server accepts.
    """
    preset = dataset_of(site.dataset).default_classes or known
    labelled = list(site.classes or [name for name in preset if name in known])
    if site.classes is None:
        labelled += [name for name in site.merges if name not in labelled]
    for key, names, of in (
        ("classes", labelled, known),
        ("uncertain", site.policy.by_class, labelled),
        ("distinct", site.distinct, labelled),
    ):
        for name in names:
            if name not in of:
                raise InputError(
                    f"{site.path}: key '{key}': '{name}' is no class of this site; "
                    f"{nearest(name, of)}."
                )
    for name in labelled:
        if why := unfit(name):
            raise InputError(f"{site.path}: {why}. Rename the class.")
    if pair := twins(labelled):
        raise InputError(
            f"{site.path}: '{pair[0]}' and '{pair[1]}' are one class spelt twice. Merge them with "
            "key 'merges', or leave one out with key 'classes'."
        )
    return tuple(labelled)


def notes_before_training(sites: Sequence[SiteLabels]) -> list[str]:
    """What people should know before they start, as far as all site files are at hand.

    Notes of the readers, classes that lack a kind of label, patient ids that two hospitals have,
    and classes of different sites that may be one finding.

    Raises:
        InputError: A patient is at two of the sites; see `check_disjoint`.
    """
    shared = check_disjoint(sites)
    own = [
        f"{each.site.site}: {note}"
        for each in sites
        for note in (
            *each.read.attrs["notes"],
            *one_sided(each.table[each.table["split"] == "train"]),
        )
    ]
    named = [site_classes(each.site, each.read) for each in sites]
    at = holders(named)
    alike = [
        f"'{pair.name}' ({', '.join(pair.sites)}) and '{pair.other}' "
        f"({', '.join(at[pair.other])}) may be one finding: {pair.reason}; {pair.suggestion}"
        for pair in near_duplicates(named)
        if pair.other in at
    ]
    return [*own, *shared, *alike]


def site_classes(site: SiteFile, read: pd.DataFrame) -> SiteClasses:
    """What a site says about classes, by its file and its labels as read.

    Raises:
        InputError: See `labelled_classes`.
    """
    columns = classes(read)
    labelled = labelled_classes(site, columns)
    return SiteClasses(site.site, labelled, tuple(columns), site.distinct)
