"""Load a site's labels and images according to its site file; check sites before training."""

from __future__ import annotations

import sys
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
from cxr_study.data.images import bit_depth, image_store
from cxr_study.data.images.image_files import locate
from cxr_study.data.images.image_store import Images
from cxr_study.data.labels import merges
from cxr_study.data.labels.class_overlap import SiteClasses, near_duplicates, sites_by_class
from cxr_study.data.labels.label_table import DESCRIPTORS, FRONTAL, classes, describe_one_sided
from cxr_study.data.labels.uncertain_labels import apply_policy
from cxr_study.data.readers import dataset_of
from cxr_study.data.readers.table import normalize_id
from cxr_study.data.sites.own_table import join
from cxr_study.data.sites.patient_split import UNUSED
from cxr_study.data.sites.site_file import SiteFile
from cxr_study.data.sites.split_file import SplitFile, apply_split, read_split
from surgical_aggregation.aggregation.class_names import twins, unfit

__all__ = ["load_images", "load_labels", "read_labels"]

CONTRADICTION = "contradiction"
"""Status of an image with notes about contradictions, at a site that refuses such images."""


@dataclass(frozen=True, eq=False)
class SiteLabels:
    """The labels of a site.

    Attributes:
        site: Its site file.
        read: Label table as read: all rows and classes of the data set, after merges.
        table: Label table to train with: the rows, views and classes of the site, after the
            policies. After the classes it has the columns `split` (one of `patient_split.SPLITS`,
            or unused) and `file` (absolute path, "" if there is none).
    """

    site: SiteFile
    read: pd.DataFrame
    table: pd.DataFrame


def read_labels(site: SiteFile) -> pd.DataFrame:
    """Read a site's csv files as a label table, and merge columns.

    Returns:
        The label table as read. Its `attrs["notes"]` are the reader's notes for people, and notes
        where images are left out because their view is not known, or are negative for a class and
        positive for a part of it.

    Raises:
        InputError: A csv does not fit the format of the data set, an image of an index has changed
            (see `own_table.join`), or a merge is not possible or not allowed.
    """
    table = readers.read(site.dataset, site.labels, site.metadata, site, site.images)
    if site.dataset == "table" and site.metadata is not None:
        table = join(table, site.metadata, site.images)
    try:
        table = merges.apply(table, site.merges, site.dataset)
    except InputError as error:
        raise InputError(f"{site.path}: key 'merges': {error}") from None
    labelled = site.classes or dataset_of(site.dataset).default_classes or classes(table)
    unseen = table["image"][table["view"] == ""]
    if site.views == "frontal" and len(unseen):
        table.attrs["notes"].append(
            f"{len(unseen):,} images have no known view, first {unseen.iloc[0]}, and are left out; "
            "'views: all' uses all images (--views all)"
        )
    against = merges.contradicting_parts(table, site.policy.blank == "negative")
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

    Args:
        site: Its site file.
        images: Names of the images, as in the label table.

    Raises:
        ImageError: Two files match an image.
    """
    return locate(site.images, images, dataset_of(site.dataset).identifying, site.nested)


def select_views(site: SiteFile, table: pd.DataFrame) -> pd.DataFrame:
    """Select the rows with views that the site uses: frontal ones, or all.

    Raises:
        InputError: No row is left.
    """
    if site.views == "all":
        return table
    frontal: pd.DataFrame = table[table["view"].isin(FRONTAL)].reset_index(drop=True)
    if frontal.empty:
        views = ", ".join(sorted({view or "unknown" for view in table["view"]}))
        raise InputError(
            f"{site.path}: none of the {len(table)} images is known to be frontal; their views are "
            f"{views}. Set 'views: all' to use them (--views all)."
        )
    return frontal


def load_labels(site: SiteFile) -> SiteLabels:
    """Read a site's labels, select its rows and classes, apply its policies and find its images.

    Raises:
        InputError: The labels or the split file do not fit their format; the split does not fit the
            labels, or has a patient twice; a class, merge or policy does not fit the data set; or
            there are blank labels whose meaning the site file does not give.
        ImageError: Two files match an image.
    """
    if not site.split.is_file():
        raise InputError(
            f"{site.path}: key 'split' needs a file that exists (looked for {site.split}). "
            f"Create it: surgagg data split {site.path}"
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
    """Read patient ids as the site's split has them.

    If the split keeps spellings of a patient apart, so does the returned site file; a note about
    that comes with it.
    """
    if site.dataset != "table" or site.patients is not None:
        return site, []
    assignment = split.assignment
    splits = assignment.groupby(assignment["patient"].map(normalize_id))["split"]
    several = int((splits.size() > 1).sum())
    if not several:
        return site, []
    note = (
        f"the split {site.split} keeps spellings of {several:,} patients apart; "
        f"{(splits.nunique() > 1).sum():,} are in more than one split. It is used unchanged; "
        f"create another: surgagg data split {site.path}"
    )
    return site.model_copy(update={"patients": "exact"}), [note]


def prepare(
    labels: SiteLabels, size: int, report: Callable[[int, int], None] | None = None
) -> tuple[pd.DataFrame, image_store.Prepared]:
    """Decode the images of a site that are in a split; problems are reported, not raised.

    Args:
        labels: The site's labels.
        size: Side of the images, pixels.
        report: Called as report(done, total) after each decoded file.

    Returns:
        The rows of the label table that are in a split, with a RangeIndex, and their images in the
        same order. The index's `notes` also name a view that contradicts the label table. If the
        site refuses images with notes, their status is `CONTRADICTION`.

    Raises:
        ImageError: See `image_store.prepare`.
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


def estimate_bits(labels: SiteLabels) -> int | None:
    """Estimate the bits that a site's 16-bit images use, as `prepare` does without the key `bits`.

    Args:
        labels: The site's labels.

    Returns:
        See `bit_depth.estimate_bits`.
    """
    files = labels.table["file"][labels.table["split"] != UNUSED]
    return bit_depth.estimate_bits([file for file in files if file])


def _notes(table: pd.DataFrame, index: pd.DataFrame) -> pd.Series:
    """Notes about each usable image, including a view that contradicts the label table."""
    view, labelled = index["view"], table["view"]
    sure = view.isin(("PA", "AP")) & labelled.isin(("PA", "AP"))
    differ = (view != labelled).where(sure, view.isin(FRONTAL) != labelled.isin(FRONTAL))
    differ &= (view != "") & (labelled != "")
    noted = (index["notes"] + "; view " + view + ", labelled " + labelled).str.removeprefix("; ")
    return index["notes"].mask(differ, noted).where(index["status"] == "ok", "")


def load_images(labels: SiteLabels, size: int) -> Images:
    """Load the usable images of a site that are in a split, with a progress bar.

    Images that are not in the cache are decoded first. If their bits are estimated, a note is
    printed.

    Args:
        labels: The site's labels.
        size: Side of the images, pixels.

    Returns:
        The images, with the label table's rows.

    Raises:
        ImageError: More images are missing, unreadable, constant or duplicates than the site's
            `bad_images` allows; names some of them and the file that lists all.
    """
    site = labels.site
    with progress.bar(f"{site.site}: decoding images") as report:
        table, prepared = prepare(labels, size, report)
    if prepared.bits and not site.bits:
        fixed = f"'bits: {prepared.bits}' in the site file fixes this"
        note = f"{site.site}: 16-bit images are assumed to have {prepared.bits} bits; {fixed}"
        print(f"note: {note}", file=sys.stderr)
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
    """Check that no two sites share a patient.

    Ids of data sets with different numberings of patients are not compared.

    Returns:
        Notes about hospitals' own tables with equal ids, which may be a coincidence.

    Raises:
        InputError: A patient is at two sites.
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
        here, there = ids if certain else [each.map(normalize_id) for each in ids]
        shared = sorted(set(here) & set(there))
        if shared and certain:
            raise InputError(
                f"a patient belongs to one site; {len(shared)} are at both {one.site.path} and "
                f"{other.site.path}, first {', '.join(shared[:3])}. Distribute the patients: "
                "surgagg data partition"
            )
        if shared:
            notes.append(
                f"{len(shared):,} patient ids are at both {one.site.site} and {other.site.site}, "
                f"first {', '.join(shared[:3])}; if they are the same patients, leave them out at "
                "one site"
            )
    return notes


def labelled_classes(site: SiteFile, known: Sequence[str]) -> tuple[str, ...]:
    """Names of the classes that a site labels.

    Args:
        site: Its site file.
        known: All classes of its label table, after merges.

    Returns:
        The classes that the site file lists; else those of its data set, and its merges.

    Raises:
        InputError: The site file names a class that the labels do not have, a class has a name that
            servers refuse, or two names are spellings of one class.
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
                    f"{site.path}: key '{key}': '{name}' is not a class of this site; "
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
    """Notes for people before training, about sites whose data are on this machine.

    They are the notes of the readers, classes with only positive or only negative labels, patient
    ids that two hospitals share, and classes of different sites that may be one finding.

    Raises:
        InputError: A patient is at two of the sites; see `check_disjoint`.
    """
    shared = check_disjoint(sites)
    own = [
        f"{each.site.site}: {note}"
        for each in sites
        for note in (
            *each.read.attrs["notes"],
            *describe_one_sided(each.table[each.table["split"] == "train"]),
        )
    ]
    named = [site_classes(each.site, each.read) for each in sites]
    at = sites_by_class(named)
    alike = [
        f"'{pair.name}' ({', '.join(pair.sites)}) and '{pair.other}' "
        f"({', '.join(at[pair.other])}) may be one finding: {pair.reason}; {pair.suggestion}"
        for pair in near_duplicates(named)
        if pair.other in at
    ]
    return [*own, *shared, *alike]


def site_classes(site: SiteFile, read: pd.DataFrame) -> SiteClasses:
    """The classes of a site, to compare them with other sites'.

    Args:
        site: Its site file.
        read: Its label table as read, after merges.

    Raises:
        InputError: See `labelled_classes`.
    """
    columns = classes(read)
    labelled = labelled_classes(site, columns)
    return SiteClasses(site.site, labelled, tuple(columns), site.distinct)
