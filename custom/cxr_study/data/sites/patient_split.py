"""Patients into splits and sites: no patient stands in two splits or at two sites.

Functions from a label table to an assignment: a data frame with one row per patient, sorted by
patient, and the columns `patient`, `split` (one of `SPLITS`, or `UNUSED`) and perhaps `site`.
Stratified by "the patient has any positive label" and, within the positive ones, by class (see
`stratify`); the order of the table's rows does not matter.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pandas as pd

from cxr_study.common.errors import InputError
from cxr_study.common.wording import listed
from cxr_study.data.labels.label_table import POSITIVE, classes

__all__ = ["split_patients"]

SPLITS = ("train", "validation", "test")
UNUSED = "unused"  # left out on purpose, to train with less data
FRACTIONS = (0.7, 0.1, 0.2)
"""Of the patients, in train, validation and test; those of Kulkarni et al., ML4H 2024."""
CURE = (
    "Where a split has no positive patient of a class, it is not trained or not measured there: "
    "other ratios (surgagg data split <site file> --ratios 60/20/20) or another seed may help."
)
"""What may help where `without_positives` finds classes."""

SCHEME = "of the patients, stratified by any positive label and by class"
RECIPE = 3  # raise it when the same seed makes another split
_DRAWS = 100  # that are made where the first leaves a split too many or too few images
_NEAR = 0.01  # of all images: that far from its share of them a split may be
_VALIDATION = 1 / 8  # of the patients that an official split, or a fold, leaves to training


def split_patients(
    table: pd.DataFrame, *, seed: int, fractions: Sequence[float] = FRACTIONS, draws: int = _DRAWS
) -> pd.DataFrame:
    """Put every patient in one split.

    Every class with at least three positive patients has one in each split, unless classes stand
    in each other's way; `without_positives` tells. Where a split's share of the images is not that
    of its patients, within 1 %, others are drawn, and the nearest is taken.

    Args:
        table: Label table as read.
        seed: With another, other patients are together.
        fractions: Of the patients, in train, validation and test.
        draws: At most; with one, a patient with many images may be in a small split.

    Raises:
        InputError: There are too few patients to give each split one.
    """
    cut = _cut(shuffled(table, seed), fractions)
    return _assignment(stratified(table, cut, seed, draws))


def split_fold(table: pd.DataFrame, fold: int, folds: int, *, seed: int) -> pd.DataFrame:
    """Test one of so many folds; of the other patients an eighth validate.

    Folds are the same for every seed, so that each patient is tested in one of them; the seed
    decides who validates.

    Args:
        table: Label table as read.
        fold: Number of the fold, from 0.
        folds: How many, 2 or more.
        seed: Of the validation split.

    Raises:
        InputError: There are too few patients to give each split one.
    """
    parts = stratified(table, np.array_split(shuffled(table, 0), folds), 0)
    rest = table[~table["patient"].isin(parts[fold])]
    cut = _cut(shuffled(rest, seed), (1 - _VALIDATION, _VALIDATION))
    return _assignment([*stratified(rest, cut, seed), parts[fold]])


def without_positives(
    assignment: pd.DataFrame, table: pd.DataFrame, names: Sequence[str]
) -> list[str]:
    """Lines about splits in which no patient has one of these classes, and perhaps `CURE`.

    Args:
        assignment: Of one site.
        table: Its label table as read.
        names: Of the classes.
    """
    split = table["patient"].map(assignment.set_index("patient")["split"])
    lines, curable = [], False
    for name in names:
        positive = (table[name] == POSITIVE) & split.isin(SPLITS)
        if missing := [part for part in SPLITS if part not in set(split[positive])]:
            patients = table["patient"][positive].nunique()
            needed = "" if patients >= len(SPLITS) else f"; {len(SPLITS)} are needed"
            curable = curable or not needed
            where = f"no positive patient in {listed(missing)} ({patients} in all{needed})"
            lines.append(f"{name}: {where}")
    return [*lines, CURE] if curable else lines


def split_by_lists(table: pd.DataFrame, parts: Mapping[str, str], *, seed: int) -> pd.DataFrame:
    """Follow official lists of images; NIH's are `train_val_list.txt` and `test_list.txt`.

    An eighth of train_val's patients validate, which makes about 70/10/20. `parts` maps images to
    "train_val" or "test" and may know more images.

    Raises:
        InputError: An image is in no list, or a patient's images are in both.
    """
    part = table["image"].map(parts)
    unlisted = table["image"][part.isna()].tolist()
    if unlisted:
        raise InputError(
            f"every image needs to be in one of the lists; {len(unlisted)} of {len(table)} are in "
            f"none: {_first(unlisted)}. Are these the lists of this data set?"
        )
    torn = part.groupby(table["patient"]).nunique()
    if (torn > 1).any():
        patients = torn.index[torn > 1].tolist()
        raise InputError(
            f"a patient's images need to be in one list; those of {len(patients)} patients are in "
            f"both: {_first(patients)}. Training on one list would leak into the other."
        )
    train_val = table[part == "train_val"]
    cut = _cut(shuffled(train_val, seed), (1 - _VALIDATION, _VALIDATION))
    train, validation = stratified(train_val, cut, seed)
    return _assignment([train, validation, table["patient"][part == "test"].unique()])


def thin(assignment: pd.DataFrame, table: pd.DataFrame, share: float, *, seed: int) -> pd.DataFrame:
    """Leave out all but a share of the training patients, at each site alike, as `UNUSED`.

    With the same seed a smaller share is a part of a larger one.
    """
    thinned = assignment.copy()
    training = assignment[assignment["split"] == "train"]
    groups = [training] if "site" not in training else [g for _, g in training.groupby("site")]
    for group in groups:
        queue = shuffled(table[table["patient"].isin(group["patient"])], seed)
        kept = queue[: max(1, round(share * len(queue)))]
        left_out = group["patient"][~group["patient"].isin(kept)]
        thinned.loc[left_out.index, "split"] = UNUSED
    return thinned


def check(table: pd.DataFrame, assignment: pd.DataFrame) -> None:
    """Refuse an assignment without a patient of the table or with one twice."""
    twice = assignment["patient"][assignment["patient"].duplicated()].unique().tolist()
    if twice:
        raise InputError(
            f"a patient stands in one split of one site, once; {len(twice)} stand here more than "
            f"once: {_first(twice)}. Keep one line for each."
        )
    known = set(assignment["patient"])
    missing = [patient for patient in table["patient"].unique() if patient not in known]
    if missing:
        raise InputError(
            f"every patient needs a split; {len(missing)} of {table['patient'].nunique()} have "
            f"none: {_first(missing)}. Add them, or make the split anew."
        )


def positive_patients(table: pd.DataFrame) -> pd.Series:
    """Whether a patient has any positive label; indexed by patient, sorted."""
    return (table[classes(table)] == POSITIVE).any(axis=1).groupby(table["patient"]).any()


def shuffled(table: pd.DataFrame, seed: int) -> np.ndarray:
    """All patients in random order, both strata spread evenly, so that any cut is stratified."""
    positive = positive_patients(table)
    rng = np.random.default_rng(seed)
    patients, places = [], []
    for stratum in (positive.index[positive], positive.index[~positive]):
        patients.append(rng.permutation(np.array(stratum, dtype=object)))
        places.append((np.arange(len(stratum)) + 0.5) / max(len(stratum), 1))
    return np.concatenate(patients)[np.argsort(np.concatenate(places), kind="stable")]


def stratified(
    table: pd.DataFrame, parts: Sequence[np.ndarray], seed: int, draws: int = 1
) -> list[np.ndarray]:
    """Exchange patients of parts so that classes are spread: positive ones for positive ones.

    Where a part has too few places for positive patients to have one of each class, any for any.
    Where a part then has another share of the images than of the patients, so many are drawn.
    """
    patients = pd.Index(np.sort(np.concatenate(parts)))
    rows = table[table["patient"].isin(patients)]
    present = (rows[classes(rows)] == POSITIVE).groupby(rows["patient"]).any().loc[patients]
    has = present.to_numpy()
    part = np.repeat(np.arange(len(parts)), [len(each) for each in parts])
    part = pd.Series(part, np.concatenate(parts))[patients].to_numpy().copy()
    positive = has.any(axis=1)
    sizes = np.bincount(part[positive], minlength=len(parts))
    images = rows["patient"].value_counts()[patients].to_numpy()

    def drawn(number: int) -> np.ndarray:
        chosen = part.copy()
        own = (seed, number) if number else seed
        rng = np.random.default_rng(own)
        chosen[positive] = stratify(has[positive], sizes, rng)
        if number:
            chosen[~positive] = rng.permutation(part[~positive])
        if _lacking(has, chosen):
            whole = stratify(has, np.bincount(part), np.random.default_rng(own))
            chosen = min(chosen, whole, key=lambda made: _lacking(has, made))
        return chosen

    def fault(made: np.ndarray) -> tuple[int, float]:
        """How often a class lacks, and how far the images of a part are from their share."""
        off = np.bincount(made, images) / images.sum() - np.bincount(part) / len(part)
        return _lacking(has, made), abs(off).max()

    chosen = drawn(0)
    if fault(chosen)[1] > _NEAR:
        chosen = min([chosen, *map(drawn, range(1, draws))], key=fault)
    return [patients[chosen == number].to_numpy() for number in range(len(parts))]


def _lacking(has: np.ndarray, part: np.ndarray) -> int:
    """How often a part has no patient with a class that is frequent enough for all parts."""
    there = np.array([has[part == number].any(axis=0) for number in np.unique(part)])
    return int((~there[:, has.sum(axis=0) >= len(there)]).sum())


def _cut(queue: np.ndarray, fractions: Sequence[float]) -> list[np.ndarray]:
    ends = np.rint(np.cumsum(fractions) * len(queue)).astype(int)
    return np.split(queue, ends[:-1])


def _assignment(parts: Sequence[np.ndarray]) -> pd.DataFrame:
    """The assignment with these patients in train, validation and test."""
    sizes = [len(part) for part in parts]
    if 0 in sizes:
        raise InputError(
            f"split '{SPLITS[sizes.index(0)]}' got none of the {sum(sizes)} patients; needs more "
            "patients."
        )
    frame = pd.DataFrame({"patient": np.concatenate(parts), "split": np.repeat(SPLITS, sizes)})
    return frame.sort_values("patient", ignore_index=True)


def _first(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")


def stratify(
    present: np.ndarray, sizes: Sequence[int] | np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Put patients into parts that have equally much of every class: iterative stratification.

    Sechidis, Tsoumakas and Vlahavas, ECML PKDD 2011: the rarest class is dealt out first, each
    patient to the part that lacks most of it. Two things are added: parts have exact sizes, and
    before anything else each part gets a patient of every class that has enough of them, so that
    rounding leaves none without.

    Args:
        present: Whether a patient has a class, bool (patients, classes).
        sizes: Patients of each part; together they are all patients.
        rng: Decides between equals.

    Returns:
        Number of the part of each patient, int64 (patients,). A class with as many patients as
        there are parts with room has one in each, unless classes stand in each other's way.
    """
    part = np.full(len(present), -1)
    room = np.array(sizes, int)
    lacking = present.sum(axis=0)[:, None] * room / max(len(present), 1)  # (classes, parts)
    order = rng.permutation(len(present))

    def put(patient: int, into: int) -> None:
        part[patient] = into
        room[into] -= 1
        lacking[present[patient], into] -= 1

    _one_of_each(present, part, room, order, put)
    while True:
        left = order[part[order] < 0]
        numbers = present[left].sum(axis=0)
        if not numbers.any():
            break
        rarest = np.flatnonzero(numbers == numbers[numbers > 0].min())[0]
        for patient in left[present[left, rarest]]:
            # Of the parts with room, the one that lacks most of the class, then of all classes.
            wants = np.lexsort(
                (rng.random(len(room)), lacking.sum(axis=0), lacking[rarest], room > 0)
            )
            put(patient, int(wants[-1]))
    part[order[part[order] < 0]] = np.repeat(np.arange(len(room)), room)
    return part


def _one_of_each(
    present: np.ndarray,
    part: np.ndarray,
    room: np.ndarray,
    order: np.ndarray,
    put: Callable[[int, int], None],
) -> None:
    """Give each part a patient of every class that has enough, the rarest class first."""
    parts = np.flatnonzero(room)
    numbers = present.sum(axis=0)
    enough = numbers >= len(parts)
    for name in np.argsort(numbers, kind="stable"):
        for into in parts[np.argsort(room[parts], kind="stable")] if enough[name] else ():
            there = present[part == into].any(axis=0)
            free = order[(part[order] < 0) & present[order, name]]
            if there[name] or not room[into] or not len(free):
                continue
            # The patient who has most of what the part has none of.
            wanted = present[np.ix_(free, enough & ~there)].sum(axis=1)
            put(int(free[np.argmax(wanted)]), int(into))
