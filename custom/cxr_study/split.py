"""Splits by patient: no patient's images stand in two of train, validation and test."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from cxr_study.csv_columns import read_columns
from cxr_study.label_table import classes

SPLITS = ("train", "validation", "test")


class SplitError(ValueError):
    """A split and the images it is for do not belong together."""


def split_patients(
    table: pd.DataFrame, *, seed: int, fractions: Sequence[float] = (0.7, 0.1, 0.2)
) -> pd.DataFrame:
    """Put every patient in one split, stratified by "patient has any positive label".

    The row order of the table does not matter.

    Args:
        table: Label table.
        seed: Another seed, another split.
        fractions: Share of the patients in train, validation and test; they sum to 1.

    Returns:
        Columns `patient` and `split` (one of `SPLITS`), sorted by patient.

    Raises:
        SplitError: There are too few patients to give each split one.
        ValueError: The fractions are not three positive numbers that sum to 1.

    Source:
        70/10/20 and the stratification: Kulkarni et al., ML4H 2024.
    """
    if len(fractions) != 3 or min(fractions) <= 0 or not np.isclose(sum(fractions), 1):
        raise ValueError(f"fractions need three positive numbers that sum to 1; got {fractions}.")
    parts = _cut(table, fractions, seed)
    for name, part in zip(SPLITS, parts, strict=True):
        if not len(part):
            raise SplitError(
                f"split '{name}' got none of the {table['patient'].nunique()} patients; needs more "
                "patients or a larger fraction."
            )
    frame = pd.DataFrame(
        {"patient": np.concatenate(parts), "split": np.repeat(SPLITS, [len(p) for p in parts])}
    )
    return frame.sort_values("patient", ignore_index=True)


def split_sites(table: pd.DataFrame, k: int, *, seed: int) -> list[pd.DataFrame]:
    """Cut a label table into K sites with equally many patients each, stratified likewise.

    Args:
        table: Label table.
        k: Number of sites.
        seed: Another seed, another cut.

    Returns:
        K label tables; no patient stands in two, and every row stands in one.

    Raises:
        SplitError: There are fewer patients than sites.
    """
    if table["patient"].nunique() < k:
        raise SplitError(f"{k} sites need {k} patients; got {table['patient'].nunique()}.")
    return [
        table[table["patient"].isin(part)].reset_index(drop=True)
        for part in _cut(table, [1 / k] * k, seed)
    ]


def _cut(table: pd.DataFrame, fractions: Sequence[float], seed: int) -> list[np.ndarray]:
    """Cut the patients into parts of these sizes.

    The patients of either stratum, in random order, are spread evenly over one queue. Wherever the
    queue is cut, both strata are cut at the same fraction, to one patient.
    """
    positive = (table[classes(table)] == 1).any(axis=1).groupby(table["patient"]).any()
    rng = np.random.default_rng(seed)
    patients, places = [], []
    for stratum in (positive.index[positive], positive.index[~positive]):
        patients.append(rng.permutation(stratum.to_numpy(dtype=object)))
        places.append((np.arange(len(stratum)) + 0.5) / max(len(stratum), 1))
    queue = np.concatenate(patients)[np.argsort(np.concatenate(places), kind="stable")]
    ends = np.rint(np.cumsum(fractions) * len(queue)).astype(int)
    return np.split(queue, ends[:-1])


def write_split(frame: pd.DataFrame, csv: Path) -> None:
    """Write a split file: a csv with the columns `patient` and `split`."""
    frame[["patient", "split"]].to_csv(csv, index=False, lineterminator="\n")


def read_split(csv: Path) -> pd.DataFrame:
    """Read a split file.

    Returns:
        Columns `patient` and `split`, in the file's order.

    Raises:
        TableError: A column is missing, or a split is none of `SPLITS`; names file and line.
    """
    columns = read_columns(csv, ["patient", "split"])
    columns.decode("split", _known)
    return columns.cells.reset_index(drop=True)


def _known(text: str) -> str:
    if text not in SPLITS:
        raise ValueError(f"needs {', '.join(SPLITS[:-1])} or {SPLITS[-1]}; got '{text}'.")
    return text


def check(table: pd.DataFrame, split: pd.DataFrame) -> None:
    """Refuse a split that leaves a patient of the table out or puts one in two splits.

    Patients that only the split knows are fine.

    Args:
        table: Label table.
        split: Columns `patient` and `split`.

    Raises:
        SplitError: Names how many patients are affected and the first three.
    """
    twice = split["patient"][split["patient"].duplicated()].unique().tolist()
    if twice:
        raise SplitError(
            f"a patient stands in one split, once; {len(twice)} stand in the split file more than "
            f"once: {_first(twice)}. Keep one line for each."
        )
    known = set(split["patient"])
    missing = [patient for patient in table["patient"].unique() if patient not in known]
    if missing:
        raise SplitError(
            f"every patient needs a split; {len(missing)} of {table['patient'].nunique()} are not "
            f"in the split file: {_first(missing)}. Add them, or make the split anew."
        )


def _first(patients: list[str]) -> str:
    return ", ".join(patients[:3]) + (", ..." if len(patients) > 3 else "")
