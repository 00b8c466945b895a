"""Patients into splits and sites: no patient stands in two splits or at two sites.

Pure functions from a label table to an assignment, a data frame with one row per patient, sorted by
patient, and the columns `patient`, `split` (one of `SPLITS`, or `UNUSED`) and, where the patients
are cut into sites, `site`. Stratified by "the patient has any positive label"; the order of the
table's rows does not matter. `split_file` keeps assignments.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from cxr_study.data.labels.label_table import POSITIVE, classes

SPLITS = ("train", "validation", "test")
UNUSED = "unused"  # left out on purpose, to study less data
FRACTIONS = (0.7, 0.1, 0.2)


class SplitError(ValueError):
    """A split and the images it is for do not belong together."""


def split_patients(
    table: pd.DataFrame, *, seed: int, fractions: Sequence[float] = FRACTIONS
) -> pd.DataFrame:
    """Put every patient in one split.

    Args:
        table: Label table, as read.
        seed: Another seed, another split.
        fractions: Share of the patients in train, validation and test; they sum to 1.

    Returns:
        The assignment.

    Raises:
        SplitError: There are too few patients to give each split one.
        ValueError: The fractions are not three positive numbers that sum to 1.

    Source:
        70/10/20 and the stratification: Kulkarni et al., ML4H 2024.
    """
    if len(fractions) != 3 or min(fractions) <= 0 or not np.isclose(sum(fractions), 1):
        raise ValueError(f"fractions need three positive numbers that sum to 1; got {fractions}.")
    return _assignment("split", SPLITS, _cut(_queue(table, seed), fractions))


def split_sites(
    table: pd.DataFrame,
    sites: Sequence[str],
    *,
    seed: int,
    fractions: Sequence[float] = FRACTIONS,
) -> pd.DataFrame:
    """Put every patient in one split, as `split_patients` does, and cut each split into sites.

    So the test patients of all sites together are the same, however many sites there are. Sites
    have equally many patients to one, in each split and altogether, and equally many positive ones
    to one in each split.

    Args:
        table: Label table, as read.
        sites: Names of the sites.
        seed: Another seed, another split and another cut.
        fractions: As for `split_patients`.

    Returns:
        The assignment, with the column `site`.

    Raises:
        SplitError: There are too few patients to give each split of each site one.
        ValueError: As for `split_patients`.
    """
    split = split_patients(table, seed=seed, fractions=fractions).set_index("patient")["split"]
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
                "needs more patients, a larger fraction or fewer sites."
            )
    cut["site"] = np.resize(sites, len(cut))
    return cut.sort_values("patient", ignore_index=True)[["patient", "site", "split"]]


def split_by_lists(
    table: pd.DataFrame, parts: Mapping[str, str], *, seed: int, validation: float = 1 / 8
) -> pd.DataFrame:
    """Follow official lists of images, such as NIH's `train_val_list.txt` and `test_list.txt`.

    NIH has no official validation split; it is cut from train_val, by patient.

    Args:
        table: Label table, as read.
        parts: Image -> "train_val" or "test"; may know more images.
        seed: Of the validation split.
        validation: Share of train_val's patients that validate. Default 1/8, which makes about
            70/10/20.

    Returns:
        The assignment.

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
    kept, held_out = _cut(_queue(train_val, seed), (1 - validation, validation))
    test = table["patient"][part == "test"].unique()
    return _assignment("split", SPLITS, [kept, held_out, test])


def thin(assignment: pd.DataFrame, table: pd.DataFrame, share: float, *, seed: int) -> pd.DataFrame:
    """Leave a part of the training patients out, at each site alike.

    With the same seed a smaller share is a part of a larger one.

    Args:
        assignment: Of the patients of `table`.
        table: Label table, as read.
        share: Of the training patients, to be kept; above 0, at most 1.
        seed: Another seed, other patients.

    Returns:
        The assignment, with the others' split `UNUSED`.

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
    """Refuse an assignment that leaves a patient of the table out or has one twice.

    Patients that only the assignment knows are fine.

    Args:
        table: Label table.
        assignment: Columns `patient` and `split`, and perhaps `site`.

    Raises:
        SplitError: Names how many patients are affected and the first three.
    """
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
    """All patients in random order, both strata spread evenly.

    Wherever the queue is cut, both strata are cut at the same fraction, to one patient.
    """
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


def _assignment(column: str, names: Sequence[str], parts: Sequence[np.ndarray]) -> pd.DataFrame:
    for name, part in zip(names, parts, strict=True):
        if not len(part):
            raise SplitError(
                f"{column} '{name}' got none of the {sum(map(len, parts))} patients; needs more "
                "patients or a larger fraction."
            )
    frame = pd.DataFrame(
        {"patient": np.concatenate(parts), column: np.repeat(names, [len(part) for part in parts])}
    )
    return frame.sort_values("patient", ignore_index=True)


def _first(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
