"""Patients into splits and sites: no patient stands in two splits or at two sites.

Functions from a label table to an assignment: a data frame with one row per patient, sorted by
patient, and the columns `patient`, `split` (one of `SPLITS`, or `UNUSED`) and perhaps `site`.
Stratified by "the patient has any positive label" and, within the positive ones, by class (see
`stratify`); the order of the table's rows does not matter.

The split file is an assignment of patients, with how it was made and from what: a csv that people
read, diff and may write by hand, behind a header in comments:

    # scheme: 70/10/20 of the patients, stratified by any positive label
    # seed: 0
    # input: sha256:5f0c...  over image, patient and any positive label of every row
    # counts:
    #   train: {patients: 21564, images: 78263, positive patients: 11721}
    #   ...
    patient,split
    1,train

A file that cuts patients into sites has the column `site` between the two. The header, where there
is one, is compared with the labels on every use.
"""

import glob
import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, takewhile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

from cxr_study.common.errors import InputError
from cxr_study.common.wording import listed
from cxr_study.common.yaml_files import parse_yaml
from cxr_study.data.labels.csv_columns import open_csv, read_columns
from cxr_study.data.labels.label_table import POSITIVE, classes
from cxr_study.data.readers.cell_values import filled, one_of

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
_VALIDATION = 1 / 8  # of the patients of NIH's train_val, which has no validation split


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


_SPLIT = one_of(f"{', '.join(SPLITS)} or {UNUSED}", {name: name for name in (*SPLITS, UNUSED)})


@dataclass(frozen=True, eq=False)
class SplitFile:
    """What a split file says.

    Attributes:
        assignment: See the module.
        header: Keys scheme, seed, input and counts; empty where the file was made by hand.
    """

    path: Path
    assignment: pd.DataFrame
    header: dict[str, Any]


def write_split(
    assignment: pd.DataFrame, table: pd.DataFrame, csv: Path, *, scheme: str, seed: int | None
) -> None:
    """Write a split file; its folder exists already. Another one there is kept, see `earlier`.

    Args:
        assignment: See the module.
        table: The label table it was made from, as read.
        csv: The file.
        scheme: How it was made, for people.
        seed: It was made with; None for an official split.
    """
    check(table, assignment)
    header = {
        "scheme": scheme,
        "seed": seed,
        "input": fingerprint(table),
        "counts": counts(assignment, table),
    }
    text = yaml.safe_dump(header, sort_keys=False, width=math.inf, default_flow_style=None)
    comment = "".join(f"# {line}\n" for line in text.splitlines())
    text = comment + assignment.to_csv(index=False, lineterminator="\n")
    if csv.is_file() and csv.read_text(encoding="utf-8") != text:
        free = (csv.with_name(f"{csv.stem}.earlier-{n}.csv") for n in count(len(earlier(csv)) + 1))
        csv.rename(next(file for file in free if not file.exists()))
    csv.write_text(text, encoding="utf-8")


def earlier(csv: Path) -> list[Path]:
    """The split files that a split file has replaced, oldest first."""
    return sorted(
        csv.parent.glob(f"{glob.escape(csv.stem)}.earlier-*.csv"),
        key=lambda file: (len(file.name), file.name),
    )


def read_split(csv: Path) -> SplitFile:
    """Read a split file.

    Raises:
        InputError: A column is missing, or a split is none of `SPLITS` or unused; names file and
            line.
        InputError: The header is not YAML.
    """
    file = open_csv(csv, comments=True)
    site = {"site": filled} if "site" in file.header else {}
    meanings = {"patient": filled, **site, "split": _SPLIT}
    columns = read_columns(file, list(meanings))
    return SplitFile(csv, pd.DataFrame(columns.decode_all(meanings)), _header(csv))


def apply_split(split_file: SplitFile, table: pd.DataFrame, site: str) -> pd.DataFrame:
    """Check a split file against the labels as read and select a site's rows.

    Returns:
        The site's rows (all, where the file has no column `site`) with the column `split` behind
        the others, and a RangeIndex.

    Raises:
        InputError: A patient has no split or two, the labels are not those the file was made
            from, its counts do not fit its lines, or the site has no patient in it.
    """
    assignment = split_file.assignment
    try:
        check(table, assignment)
        _check_header(split_file, table)
    except InputError as error:
        raise InputError(f"{split_file.path}: {error}") from None
    if "site" in assignment:
        known = sorted(set(assignment["site"]))
        assignment = assignment[assignment["site"] == site]
        if assignment.empty:
            raise InputError(
                f"{split_file.path}: site '{site}' has no patient; its sites are "
                f"{', '.join(known)}. The name of the site file is the site's."
            )
    rows = table.assign(split=table["patient"].map(assignment.set_index("patient")["split"]))
    return rows[rows["split"].notna()].reset_index(drop=True)


def fingerprint(table: pd.DataFrame) -> str:
    """Hash of image, patient and any positive label of every row, in any order."""
    positive = table["patient"].map(positive_patients(table)).map({True: "1", False: "0"})
    lines = sorted(table["image"] + "\t" + table["patient"] + "\t" + positive)
    return "sha256:" + hashlib.sha256("\n".join(lines).encode()).hexdigest()


def counts(assignment: pd.DataFrame, table: pd.DataFrame) -> dict[str, Any]:
    """Count patients, images and positive patients per split, or per site and split."""
    positive = positive_patients(table)
    rows = assignment[assignment["patient"].isin(positive.index)]
    images = rows["patient"].map(table["patient"].value_counts())
    rows = rows.assign(patients=1, images=images, positive=rows["patient"].map(positive))
    rows = rows.rename(columns={"positive": "positive patients"})
    if "site" not in rows:
        return _counts_by_split(rows)
    return {str(site): _counts_by_split(group) for site, group in rows.groupby("site")}


def _counts_by_split(rows: pd.DataFrame) -> dict[str, dict[str, int]]:
    sums = rows.groupby("split")[["patients", "images", "positive patients"]].sum().astype(int)
    order = [name for name in (*SPLITS, UNUSED) if name in sums.index]
    return sums.loc[order].to_dict("index")


def _check_header(split_file: SplitFile, table: pd.DataFrame) -> None:
    header = split_file.header
    if "input" not in header:
        return  # made by hand
    if header["input"] != fingerprint(table):
        raise InputError(
            "the labels are not those that this split was made from: an image, a patient or a "
            "finding was added, removed or changed, or other views are used. Make the split anew "
            "(surgagg data split), or, to keep it as it is, remove the lines that begin with '#'."
        )
    if header.get("counts") != counts(split_file.assignment, table):
        raise InputError(
            "the counts in the header are not those of the lines: the file was edited. Make the "
            "split anew (surgagg data split), or remove the lines that begin with '#'."
        )


def _header(csv: Path) -> dict[str, Any]:
    """The header in comments."""
    with csv.open(encoding="utf-8-sig") as file:
        comment = list(takewhile(lambda line: line.startswith("#"), file))
    try:
        header = parse_yaml("".join(line[1:].removeprefix(" ") for line in comment))
    except yaml.YAMLError as error:
        raise InputError(f"{csv}: the header cannot be read as YAML: {error}") from error
    return header if isinstance(header, dict) else {}
