"""How a model does on the images of one sex, age or view, class by class and on average."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from surgical_aggregation.aggregation.metrics import auroc

FEWEST = 10
"""Positives, and negatives, of a class with which its AUROC says something."""

AGES = ("0-39", "40-59", "60-79", "80+")
"""Bands of years."""

_FROM = (40, 60, 80)  # years, where the bands after the first begin


def _age_bands(table: pd.DataFrame) -> pd.Series:
    bands = pd.Series(np.array(AGES)[np.digitize(table["age"], _FROM)], table.index)
    return bands.where(table["age"].notna(), "")


KINDS: Mapping[str, Callable[[pd.DataFrame], pd.Series]] = {
    "sex": lambda table: table["sex"],
    "age": _age_bands,
    "view": lambda table: table["view"],
}
"""Kind -> the subgroup of each image of a label table; "" where it is not known."""


def by_subgroup(
    table: pd.DataFrame, classes: Sequence[str], scores: np.ndarray
) -> Iterator[dict[str, Any]]:
    """Measure a model in every subgroup of a test split.

    Args:
        table: Label table with descriptors; 1, 0 or NaN for each class.
        classes: Of the table, in the order of the scores.
        scores: Shape (images, classes); NaN where the model lacks a class.

    Yields:
        A line per kind and subgroup, without kinds of which the table says nothing: "kind",
        "subgroup", "images", "patients"; "unknown": images of the split whose subgroup is not
        known; "of": how many classes there are; "classes", "auroc", "auroc_sd": how many of them
        the subgroup defines, with the mean and sample SD of their AUROCs; "few": how many of these
        have fewer than `FEWEST` positives, or negatives; "compared", "compared_auroc": how many
        classes have as many in every subgroup of the kind, and the mean over them.
    """
    labels, lacks = table[list(classes)].to_numpy(float), np.isnan(scores).any()
    for kind, subgroup_of in KINDS.items():
        subgroup = subgroup_of(table)
        members = {name: (subgroup == name).to_numpy() for name in sorted(set(subgroup) - {""})}
        fewest = {name: _fewest(labels[rows]) for name, rows in members.items()}
        compared = np.all([few >= FEWEST for few in fewest.values()], axis=0)
        for name, rows in members.items():
            areas = np.full(len(classes), np.nan) if lacks else auroc(labels[rows], scores[rows])
            defined = pd.Series(areas).dropna()
            yield {
                "kind": kind,
                "subgroup": name,
                "images": int(rows.sum()),
                "patients": int(table.loc[rows, "patient"].nunique()),
                "unknown": int((subgroup == "").sum()),
                "of": len(classes),
                "classes": len(defined),
                "auroc": defined.mean(),
                "auroc_sd": defined.std(),
                "few": int((fewest[name][defined.index] < FEWEST).sum()),
                "compared": int(compared.sum()),
                "compared_auroc": pd.Series(areas[compared]).mean(),
            }


def _fewest(labels: np.ndarray) -> np.ndarray:
    """Positives or negatives of each class, whichever are fewer."""
    return np.minimum((labels == 1).sum(axis=0), (labels == 0).sum(axis=0))
