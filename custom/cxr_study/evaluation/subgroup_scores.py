"""AUROC of a model on the images of one sex, age group or view."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from surgical_aggregation.aggregation.metrics import auroc

FEWEST = 10
"""Positive, and negative, images of a class in a subgroup that a comparison of AUROCs needs."""

AGES = ("0-39", "40-59", "60-79", "80+")
"""Age groups, in years."""

_FROM = (40, 60, 80)  # years, lower ends of the age groups after the first


def _age_groups(table: pd.DataFrame) -> pd.Series:
    """Age group of each image; "" if the age is not known."""
    groups = pd.Series(np.array(AGES)[np.digitize(table["age"], _FROM)], table.index)
    return groups.where(table["age"].notna(), "")


KINDS: Mapping[str, Callable[[pd.DataFrame], pd.Series]] = {
    "sex": lambda table: table["sex"],
    "age": _age_groups,
    "view": lambda table: table["view"],
}
"""Kind -> function from a label table to the subgroup of each image; "" if it is not known."""


def by_subgroup(
    table: pd.DataFrame, classes: Sequence[str], scores: np.ndarray
) -> Iterator[dict[str, Any]]:
    """Compute a model's AUROC in every subgroup of a test split.

    Args:
        table: Label table with descriptors; 1, 0 or NaN for each class.
        classes: Columns of the table, in the order of the scores.
        scores: Shape (images, classes); NaN for a class that the model lacks.

    Yields:
        One dictionary per kind and subgroup; a kind that is not known for any image is left out:

        - "kind", "subgroup", "images", "patients": which subgroup, and its size;
        - "unknown": number of images of the split whose subgroup is not known;
        - "of": number of classes;
        - "classes", "auroc", "auroc_sd": number of classes whose AUROC is defined in the subgroup,
          and the mean and sample SD of these AUROCs;
        - "few": number of these with fewer than `FEWEST` positives or negatives;
        - "compared", "compared_auroc": number of classes with at least `FEWEST` positives and
          negatives in every subgroup of the kind, and the mean over them.
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
    """The smaller of the numbers of positives and negatives of each class, shape (classes,)."""
    return np.minimum((labels == 1).sum(axis=0), (labels == 0).sum(axis=0))
