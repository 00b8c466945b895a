"""Patients into splits and sites: no patient stands in two splits or at two sites.

Functions from a label table to an assignment: a data frame with one row per patient, sorted by
patient, and the columns `patient`, `split` (one of `SPLITS`, or `UNUSED`) and perhaps `site`.
Stratified by "the patient has any positive label"; the order of the table's rows does not matter.
`split_file` keeps assignments.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from cxr_study.data.labels.label_table import POSITIVE, classes

SPLITS = ("train", "validation", "test")
UNUSED = "unused"  # left out on purpose, to train with less data
_FRACTIONS = (0.7, 0.1, 0.2)
_VALIDATION = 1 / 8  # of the patients of NIH's train_val, which has no validation split


class SplitError(ValueError):
    """A split does not fit the images it is for, or cannot be made."""


def split_patients(table: pd.DataFrame, *, seed: int) -> pd.DataFrame:
    """Put every patient in one split: 70/10/20, stratified, as Kulkarni et al., ML4H 2024.

    Raises:
        SplitError: There are too few patients to give each split one.
    """
    return _assignment(_cut(_queue(table, seed), _FRACTIONS))


def split_sites(table: pd.DataFrame, sites: Sequence[str], *, seed: int) -> pd.DataFrame:
    """Put every patient in one split, as `split_patients` does, and cut each split into sites.

    So the test patients of all sites together are the same, however many sites there are. In each
    split and altogether, sites' numbers of patients differ by one at most; in each split also
    their numbers of positive patients.

    Raises:
        SplitError: There are too few patients to give each split of each site one.
    """
    split = split_patients(table, seed=seed).set_index("patient")["split"]
    positive = positive_patients(table)
    # Each stratum of each split in random order, one after the other, is dealt out to the sites
    # like cards: of whatever stands together they get equally many.
    cut = pd.DataFrame({"patient": _queue(table, seed)})
    cut["split"] = cut["patient"].map(split)
    cut["positive"] = cut["patient"].map(positive)
    cut = cut.sort_values(["split", "positive"], kind="stable")
    for name, number in cut["split"].value_counts().items():
        if number < len(sites):
            raise SplitError(
                f"split '{name}' has {number} of the {len(cut)} patients for {len(sites)} sites; "
                "needs more patients or fewer sites."
            )
    cut["site"] = np.resize(sites, len(cut))
    return cut.sort_values("patient", ignore_index=True)[["patient", "site", "split"]]


def split_by_lists(table: pd.DataFrame, parts: Mapping[str, str], *, seed: int) -> pd.DataFrame:
    """Follow official lists of images; NIH's are `train_val_list.txt` and `test_list.txt`.

    An eighth of train_val's patients validate, which makes about 70/10/20. `parts` maps images to
    "train_val" or "test" and may know more images.

    Raises:
        SplitError: An image is in no list, or a patient's images are in both.
    """
    part = table["image"].map(parts)
    unlisted = table["image"][part.isna()].tolist()
    if unlisted:
        raise SplitError(
            f"every image needs to be in one of the lists; {len(unlisted)} of {len(table)} are in "
            f"none: {_first(unlisted)}. Are these the lists of this data set?"
        )
    torn = part.groupby(table["patient"]).nunique()
    if (torn > 1).any():
        patients = torn.index[torn > 1].tolist()
        raise SplitError(
            f"a patient's images need to be in one list; those of {len(patients)} patients are in "
            f"both: {_first(patients)}. Training on one list would leak into the other."
        )
    train_val = table[part == "train_val"]
    train, validation = _cut(_queue(train_val, seed), (1 - _VALIDATION, _VALIDATION))
    return _assignment([train, validation, table["patient"][part == "test"].unique()])


def thin(assignment: pd.DataFrame, table: pd.DataFrame, share: float, *, seed: int) -> pd.DataFrame:
    """Leave out all but a share of the training patients, at each site alike, as `UNUSED`.

    With the same seed a smaller share is a part of a larger one.

    Raises:
        ValueError: The share is not above 0 and at most 1.
    """
    if not 0 < share <= 1:
        raise ValueError(f"a share of the training patients is above 0, at most 1; got {share}.")
    thinned = assignment.copy()
    training = assignment[assignment["split"] == "train"]
    groups = [training] if "site" not in training else [g for _, g in training.groupby("site")]
    for group in groups:
        queue = _queue(table[table["patient"].isin(group["patient"])], seed)
        kept = queue[: max(1, round(share * len(queue)))]
        left_out = group["patient"][~group["patient"].isin(kept)]
        thinned.loc[left_out.index, "split"] = UNUSED
    return thinned


def check(table: pd.DataFrame, assignment: pd.DataFrame) -> None:
    """Refuse an assignment without a patient of the table or with one twice."""
    twice = assignment["patient"][assignment["patient"].duplicated()].unique().tolist()
    if twice:
        raise SplitError(
            f"a patient stands in one split of one site, once; {len(twice)} stand here more than "
            f"once: {_first(twice)}. Keep one line for each."
        )
    known = set(assignment["patient"])
    missing = [patient for patient in table["patient"].unique() if patient not in known]
    if missing:
        raise SplitError(
            f"every patient needs a split; {len(missing)} of {table['patient'].nunique()} have "
            f"none: {_first(missing)}. Add them, or make the split anew."
        )


def positive_patients(table: pd.DataFrame) -> pd.Series:
    """Whether a patient has any positive label; indexed by patient, sorted."""
    return (table[classes(table)] == POSITIVE).any(axis=1).groupby(table["patient"]).any()


def _queue(table: pd.DataFrame, seed: int) -> np.ndarray:
    """All patients in random order, both strata spread evenly, so that any cut is stratified."""
    positive = positive_patients(table)
    rng = np.random.default_rng(seed)
    patients, places = [], []
    for stratum in (positive.index[positive], positive.index[~positive]):
        patients.append(rng.permutation(np.array(stratum, dtype=object)))
        places.append((np.arange(len(stratum)) + 0.5) / max(len(stratum), 1))
    return np.concatenate(patients)[np.argsort(np.concatenate(places), kind="stable")]


def _cut(queue: np.ndarray, fractions: Sequence[float]) -> list[np.ndarray]:
    ends = np.rint(np.cumsum(fractions) * len(queue)).astype(int)
    return np.split(queue, ends[:-1])


def _assignment(parts: Sequence[np.ndarray]) -> pd.DataFrame:
    """The assignment with these patients in train, validation and test."""
    sizes = [len(part) for part in parts]
    if 0 in sizes:
        raise SplitError(
            f"split '{SPLITS[sizes.index(0)]}' got none of the {sum(sizes)} patients; needs more "
            "patients."
        )
    splits = np.repeat(SPLITS, sizes)
    frame = pd.DataFrame({"patient": np.concatenate(parts), "split": splits})
    return frame.sort_values("patient", ignore_index=True)


def _first(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
