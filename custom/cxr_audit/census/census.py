"""The census of one site: complete, so it stays at the site."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from cxr_study.data.labels.label_table import (
    BLANK,
    FRONTAL,
    NEGATIVE,
    POSITIVE,
    UNCERTAIN,
    VIEWS,
    classes,
)
from cxr_study.data.readers import dataset_of
from cxr_study.data.sites.patient_split import SPLITS
from cxr_study.data.sites.site_data import CONTRADICTION, SiteLabels

STATES = {
    "positive": POSITIVE,
    "negative": NEGATIVE,
    "uncertain": UNCERTAIN,
    "blank": BLANK,
    "not labelled": np.nan,
}
"""Labels as read."""
OUTCOMES = ("positive", "negative", "soft", "not labelled")
"""Labels after the policy; "soft" is between 0 and 1."""

UNKNOWN = "unknown"
AGES = (*(f"{start}-{start + 9}" for start in range(0, 90, 10)), "90+", UNKNOWN)
SEXES = ("F", "M", UNKNOWN)
VIEW_NAMES = tuple(view or UNKNOWN for view in VIEWS)
UNUSABLE = ("missing", "unreadable", "constant", "duplicate", CONTRADICTION)
_QUANTILES = (0.0, 0.25, 0.5, 0.75, 1.0)
_PER_PATIENT = {"1": (1, 1), "2": (2, 2), "3-5": (3, 5), "6-10": (6, 10), "11+": (11, np.inf)}


@dataclass(frozen=True)
class CellCount:
    """The images of a cell.

    Attributes:
        images: Number of images.
        patients: Number of their patients; of images, where patients are unknown.
    """

    images: int
    patients: int


@dataclass(frozen=True)
class ClassCensus:
    """The labels of one class, over the images that are used.

    Attributes:
        uncertain: What uncertain labels count as; see `uncertain_labels`.
        read: Labels as read, by `STATES`.
        labels: Images by `OUTCOMES`.
        positives: Images labelled 1 after the policy, by split.
    """

    uncertain: str
    read: Mapping[str, CellCount]
    labels: Mapping[str, int]
    positives: Mapping[str, int]


@dataclass(frozen=True)
class Census:
    """The complete census of a site; an image is used when it is in a split and can be decoded.

    Attributes:
        site: Name of the site.
        dataset: Key of `readers.DATASETS`.
        patients_known: Whether the data set identifies patients.
        blank: What blank labels count as.
        rows: Rows of the csv files.
        dropped: Reason -> rows left out; the others are used.
        total: Images used.
        per_patient: Images per patient -> patients.
        views_read: View -> rows of the csv files.
        views: View -> images used.
        sex: Sex -> images used.
        age: Decade -> images used.
        age_quantiles: Minimum, quartiles and maximum of the known ages; empty when none is known.
        splits: Split -> images used.
        classes: Class -> its labels.
        cooccurrence: Images positive for both classes, in the order of `classes`.
        bad_images: Unusable images of the splits: `image`, `status` and `detail`.
        duplicates_across: Duplicates of an image in another split.
        noted: Contradiction to the image being a chest radiograph of the view in its row -> number
            of images with it; they are used.
    """

    site: str
    dataset: str
    patients_known: bool
    blank: str | None
    rows: int
    dropped: Mapping[str, int]
    total: CellCount
    per_patient: Mapping[str, int]
    views_read: Mapping[str, int]
    views: Mapping[str, CellCount]
    sex: Mapping[str, CellCount]
    age: Mapping[str, CellCount]
    age_quantiles: Sequence[float]
    splits: Mapping[str, CellCount]
    classes: Mapping[str, ClassCensus]
    cooccurrence: Sequence[Sequence[int]]
    bad_images: Sequence[Mapping[str, str]]
    duplicates_across: int
    noted: Mapping[str, int]


def count_data(labels: SiteLabels, in_split: pd.DataFrame, index: pd.DataFrame) -> Census:
    """Count a site's data.

    Args:
        labels: What `site_data.load_labels` returns.
        in_split: The rows of its table that are in a split.
        index: The state of their images, row by row; see `image_store.Prepared`.
    """
    site, read = labels.site, labels.read
    bad = index[index["status"] != "ok"]
    used = in_split[(index["status"] == "ok").to_numpy()]
    read_used = read.set_index("image").loc[used["image"]]
    labelled = classes(labels.table)
    states = {value: name for name, value in STATES.items()}
    other_views = 0 if site.views == "all" else int((~read["view"].isin(FRONTAL)).sum())
    positive = (used[labelled] == 1).to_numpy(int)
    images = used["patient"].value_counts()
    ages = used["age"].dropna()
    return Census(
        site=site.site,
        dataset=site.dataset,
        patients_known=bool(dataset_of(site.dataset).patients) and site.patients != "each-image",
        blank=site.policy.blank,
        rows=len(read),
        dropped={
            "other views": other_views,
            "other sites": len(read) - other_views - len(labels.table),
            "unused in the split": len(labels.table) - len(in_split),
        }
        | {name: int((index["status"] == name).sum()) for name in UNUSABLE},
        total=_tally(used),
        per_patient={
            name: int(images.between(low, high).sum()) for name, (low, high) in _PER_PATIENT.items()
        },
        views_read={
            name: int((read["view"].replace("", UNKNOWN) == name).sum()) for name in VIEW_NAMES
        },
        views=_tallies(used, used["view"].replace("", UNKNOWN), VIEW_NAMES),
        sex=_tallies(used, used["sex"].replace("", UNKNOWN), SEXES),
        age=_tallies(used, used["age"].map(_decade), AGES),
        age_quantiles=[float(age) for age in ages.quantile(_QUANTILES)] if len(ages) else [],
        splits=_tallies(used, used["split"], SPLITS),
        classes={
            name: ClassCensus(
                uncertain=site.policy.of(name),
                read=_tallies(used, read_used[name].map(states), tuple(STATES)),
                labels={
                    k: t.images for k, t in _tallies(used, _outcome(used[name]), OUTCOMES).items()
                },
                positives={s: int((used["split"][used[name] == 1] == s).sum()) for s in SPLITS},
            )
            for name in labelled
        },
        cooccurrence=(positive.T @ positive).tolist(),
        bad_images=bad[["image", "status", "detail"]].to_dict("records"),
        duplicates_across=_across(in_split, index),
        noted=_noted(index),
    )


def _tally(rows: pd.DataFrame) -> CellCount:
    """Count images and patients of some rows."""
    return CellCount(len(rows), rows["patient"].nunique())


def _tallies(
    rows: pd.DataFrame, cell: pd.Series | np.ndarray, names: Sequence[str]
) -> dict[str, CellCount]:
    """Count rows by the name of their cell."""
    cells = np.asarray(cell, dtype=object)
    return {name: _tally(rows[cells == name]) for name in names}


def _outcome(labels: pd.Series) -> np.ndarray:
    """The outcome of each label after the policy, of `OUTCOMES`."""
    conditions = [labels == 1, labels == 0, labels.isna()]
    return np.select(conditions, ["positive", "negative", "not labelled"], "soft")


def _decade(age: float) -> str:
    """The cell of an age in years; NaN is `UNKNOWN`."""
    return UNKNOWN if np.isnan(age) else AGES[min(int(age) // 10, 9)]


def _noted(index: pd.DataFrame) -> dict[str, int]:
    """Count the contradictions that were found in usable images."""
    notes = index["notes"][index["status"] == "ok"].str.split("; ").explode()
    return {str(note): int(n) for note, n in notes[notes != ""].value_counts().items()}


def _across(in_split: pd.DataFrame, index: pd.DataFrame) -> int:
    """Count duplicates whose original, named in `detail`, is in another split."""
    split = dict(zip(in_split["image"], in_split["split"], strict=True))
    repeats = index[index["status"] == "duplicate"]
    return sum(
        split.get(row.detail, split[row.image]) != split[row.image] for row in repeats.itertuples()
    )
