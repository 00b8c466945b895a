"""Split patients into train, validation and test; no patient is in two splits or at two sites.

The functions compute an assignment from a label table: a data frame with one row per patient,
sorted by patient, and the columns `patient`, `split` (one of `SPLITS`, or `UNUSED`) and, if there
are several sites, `site`. Splits are stratified by whether a patient has any positive label and,
among those who have, by class (see `stratify`). They do not depend on the order of the table's
rows.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pandas as pd

from cxr_study.common.errors import InputError
from cxr_study.common.wording import join_names
from cxr_study.data.labels.label_table import POSITIVE, classes

__all__ = ["split_patients"]

SPLITS = ("train", "validation", "test")
UNUSED = "unused"
"""Split of patients who are left out to train with less data."""
FRACTIONS = (0.7, 0.1, 0.2)
"""Fractions of patients in train, validation and test; from Kulkarni et al., ML4H 2024."""
REMEDY = (
    "A class without a positive patient in a split is not trained or not measured there: other "
    "ratios (surgagg data split <site file> --ratios 60/20/20) or another seed may help."
)
"""Advice if `without_positives` finds classes."""

SCHEME = "of the patients, stratified by any positive label and by class"
"""Description of the method, for the headers of split files."""
RECIPE = 3  # version of the method; increase it when a seed gives another split
_DRAWS = 100  # tries, if the first one gives a split too many or too few images
_NEAR = 0.01  # of all images: tolerated difference of a split from its share
_VALIDATION = 1 / 8  # of the training patients of an official split or a fold


def split_patients(
    table: pd.DataFrame, *, seed: int, fractions: Sequence[float] = FRACTIONS, draws: int = _DRAWS
) -> pd.DataFrame:
    """Assign each patient to one split.

    Every class with at least three positive patients has one in each split, unless this is
    impossible for several classes at once; `without_positives` reports that. If a split's share of
    the images differs from its share of the patients by more than 1 %, more splits are drawn and
    the closest one is used.

    Args:
        table: Label table as read.
        seed: Random seed.
        fractions: Fractions of patients in train, validation and test, with the sum 1.
        draws: Largest number of draws. With one, a patient with many images may unbalance a small
            split.

    Returns:
        The assignment, see the module.

    Raises:
        InputError: There are too few patients to give each split one.
    """
    cut = _cut(shuffled(table, seed), fractions)
    return _assignment(stratified(table, cut, seed, draws))


def split_fold(table: pd.DataFrame, fold: int, folds: int, *, seed: int) -> pd.DataFrame:
    """Assign patients for cross-validation: one fold is tested, 1/8 of the others validates.

    Folds are the same for every seed, so that each patient is tested in exactly one of them; the
    seed selects the validation patients.

    Args:
        table: Label table as read.
        fold: Number of the fold to test, from 0.
        folds: Number of folds, 2 or more.
        seed: Random seed of the validation split.

    Returns:
        The assignment, see the module.

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
    """Describe classes that have no positive patient in a split.

    Args:
        assignment: Of one site.
        table: Its label table as read.
        names: Classes to check.

    Returns:
        A line for each such class, and `REMEDY` if one of them has enough patients.
    """
    split = table["patient"].map(assignment.set_index("patient")["split"])
    lines, curable = [], False
    for name in names:
        positive = (table[name] == POSITIVE) & split.isin(SPLITS)
        if missing := [part for part in SPLITS if part not in set(split[positive])]:
            patients = table["patient"][positive].nunique()
            needed = "" if patients >= len(SPLITS) else f"; {len(SPLITS)} are needed"
            curable = curable or not needed
            where = f"no positive patient in {join_names(missing)} ({patients} in all{needed})"
            lines.append(f"{name}: {where}")
    return [*lines, REMEDY] if curable else lines


def split_by_lists(table: pd.DataFrame, parts: Mapping[str, str], *, seed: int) -> pd.DataFrame:
    """Assign patients by official lists of images, such as NIH's.

    1/8 of the patients in train_val become the validation split, which gives about 70/10/20.

    Args:
        table: Label table as read.
        parts: Image -> "train_val" or "test", see `nih.official_lists`; may have more images.
        seed: Random seed of the validation split.

    Returns:
        The assignment, see the module.

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


def subsample_training(
    assignment: pd.DataFrame, table: pd.DataFrame, share: float, *, seed: int
) -> pd.DataFrame:
    """Keep a share of the training patients at each site; the others become `UNUSED`.

    With the same seed, the patients of a smaller share are a subset of those of a larger one.

    Args:
        assignment: See the module; stays unchanged.
        table: The label table it was made from.
        share: Share of the training patients to keep, above 0 and at most 1; at least one patient
            of each site is kept.
        seed: Random seed.
    """
    thinned: pd.DataFrame = assignment.copy()
    training = assignment[assignment["split"] == "train"]
    groups = [training] if "site" not in training else [g for _, g in training.groupby("site")]
    for group in groups:
        queue = shuffled(table[table["patient"].isin(group["patient"])], seed)
        kept = queue[: max(1, round(share * len(queue)))]
        left_out = group["patient"][~group["patient"].isin(kept)]
        thinned.loc[left_out.index, "split"] = UNUSED
    return thinned


def check(table: pd.DataFrame, assignment: pd.DataFrame) -> None:
    """Check that an assignment has each patient of a label table, and none twice.

    Raises:
        InputError: It lacks a patient or repeats one.
    """
    twice = assignment["patient"][assignment["patient"].duplicated()].unique().tolist()
    if twice:
        raise InputError(
            f"a patient is in one split of one site; {len(twice)} have more than one line: "
            f"{_first(twice)}. Keep one line for each."
        )
    known = set(assignment["patient"])
    missing = [patient for patient in table["patient"].unique() if patient not in known]
    if missing:
        raise InputError(
            f"every patient needs a split; {len(missing)} of {table['patient'].nunique()} have "
            f"none: {_first(missing)}. Add them, or create the split again."
        )


def positive_patients(table: pd.DataFrame) -> pd.Series:
    """Whether each patient has any positive label: bool, indexed by patient, sorted."""
    rows = (table[classes(table)] == POSITIVE).any(axis=1)
    return rows.groupby(table["patient"]).any()


def shuffled(table: pd.DataFrame, seed: int) -> np.ndarray:
    """All patients in random order, with both strata spread evenly: every cut is stratified.

    Args:
        table: Label table as read; its strata are patients with and without a positive label.
        seed: Random seed.

    Returns:
        Ids of the patients, object (patients,).
    """
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
    """Exchange patients between parts so that each class is spread evenly over them.

    Positive patients are exchanged for positive ones. If a part has too few positive patients to
    get one of each class, any patients are exchanged. The sizes of the parts stay.

    Args:
        table: Label table as read.
        parts: Patients of each part, which do not overlap.
        seed: Random seed.
        draws: Largest number of draws; further ones are tried if a part's share of the images
            differs from its share of the patients by more than 1 %. Default 1.

    Returns:
        Patients of each part, sorted, in the order of `parts`.
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
        chosen: np.ndarray = part.copy()
        own = (seed, number) if number else seed
        rng = np.random.default_rng(own)
        chosen[positive] = stratify(has[positive], sizes, rng)
        if number:
            chosen[~positive] = rng.permutation(part[~positive])
        if _lacking(has, chosen):
            unrestricted = stratify(has, np.bincount(part), np.random.default_rng(own))
            chosen = min(chosen, unrestricted, key=lambda made: _lacking(has, made))
        return chosen

    def fault(made: np.ndarray) -> tuple[int, float]:
        """Missing classes over all parts, and the largest deviation of a part's images."""
        off = np.bincount(made, images) / images.sum() - np.bincount(part) / len(part)
        return _lacking(has, made), abs(off).max()

    chosen = drawn(0)
    if fault(chosen)[1] > _NEAR:
        chosen = min([chosen, *map(drawn, range(1, draws))], key=fault)
    return [patients[chosen == number].to_numpy() for number in range(len(parts))]


def _lacking(has: np.ndarray, part: np.ndarray) -> int:
    """Number of pairs of part and missing class, for classes with enough patients for all."""
    there = np.array([has[part == number].any(axis=0) for number in np.unique(part)])
    return int((~there[:, has.sum(axis=0) >= len(there)]).sum())


def _cut(queue: np.ndarray, fractions: Sequence[float]) -> list[np.ndarray]:
    """Cut a queue of patients into consecutive parts with these fractions."""
    ends = np.rint(np.cumsum(fractions) * len(queue)).astype(int)
    return np.split(queue, ends[:-1])


def _assignment(parts: Sequence[np.ndarray]) -> pd.DataFrame:
    """The assignment with these patients in train, validation and test."""
    sizes = [len(part) for part in parts]
    if 0 in sizes:
        raise InputError(
            f"split '{SPLITS[sizes.index(0)]}' has none of the {sum(sizes)} patients; more are "
            "needed."
        )
    frame = pd.DataFrame({"patient": np.concatenate(parts), "split": np.repeat(SPLITS, sizes)})
    return frame.sort_values("patient", ignore_index=True)


def _first(names: Sequence[str]) -> str:
    """The first three names, for a message."""
    return ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")


def stratify(
    present: np.ndarray, sizes: Sequence[int] | np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Assign patients to parts with equal shares of every class: iterative stratification.

    The rarest class is distributed first, each patient to the part that lacks most of it. There are
    two extensions of the published algorithm: parts have exact sizes; and before anything else,
    each part gets a patient of every class that has enough patients, so that rounding does not
    leave a part without.

    Args:
        present: Whether a patient has a class, bool (patients, classes).
        sizes: Number of patients in each part; the sum is the number of all patients.
        rng: Breaks ties.

    Returns:
        Number of the part of each patient, int64 (patients,). A class with at least as many
        patients as there are non-empty parts has one in each, unless this is impossible for several
        classes at once.

    Source:
        Sechidis, Tsoumakas and Vlahavas, On the stratification of multi-label data, ECML PKDD 2011.
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
    """Give each part a patient of every class with enough patients, the rarest class first."""
    parts = np.flatnonzero(room)
    numbers = present.sum(axis=0)
    enough = numbers >= len(parts)
    for name in np.argsort(numbers, kind="stable"):
        for into in parts[np.argsort(room[parts], kind="stable")] if enough[name] else ():
            there = present[part == into].any(axis=0)
            free = order[(part[order] < 0) & present[order, name]]
            if there[name] or not room[into] or not len(free):
                continue
            # The patient with the most classes that the part does not have yet.
            wanted = present[np.ix_(free, enough & ~there)].sum(axis=1)
            put(int(free[np.argmax(wanted)]), int(into))
