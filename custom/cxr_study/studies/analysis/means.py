"""Means over classes and over seeds of what the models of a study reach."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pandas as pd

from cxr_study.data.labels.vocabulary import CHEXPERT_CLASSES, NIH_CLASSES
from cxr_study.evaluation.seed_intervals import interval
from cxr_study.studies.analysis.scores import METRICS

GROUPS: Mapping[str, Callable[[pd.DataFrame], pd.Series]] = {
    "all": lambda scores: pd.Series(True, index=scores.index),
    "shared": lambda scores: scores["shared"],
    "unique": lambda scores: ~scores["shared"] & scores["labelled"],
    "elsewhere": lambda scores: ~scores["labelled"],
    "nih": lambda scores: scores["class"].isin(NIH_CLASSES),
    "chexpert": lambda scores: scores["class"].isin(CHEXPERT_CLASSES),
}
"""Classes of a mean: name -> which rows of `scores`. Shared are those that all sites label, as in
the papers; unique are the tested site's others; elsewhere are those that it does not label itself,
which are tested where there are labels for evaluation only."""

RUN = ["scenario", "method", "strategy", "seed", "model", "test"]
"""Columns that tell a model on a test set from others."""


def by_run(scores: pd.DataFrame) -> pd.DataFrame:
    """Means over classes, of each model on each test set.

    Args:
        scores: See `scores`.

    Returns:
        Columns `RUN`, group, classes (how many are defined), of, and for each of `METRICS` the mean
        and `<metric>_sd`, over the classes that are defined; both NaN, "not defined", where the
        model lacks a class of the group.
    """
    means = []
    for group, chosen in GROUPS.items():
        for keys, rows in scores[chosen(scores)].groupby(RUN, sort=False):
            defined = rows if rows["predicted"].all() else rows.iloc[:0]
            mean = dict(zip(RUN, keys, strict=True))
            mean |= {"group": group, "of": len(rows), "classes": int(defined["auroc"].count())}
            for metric in METRICS:
                mean |= {metric: defined[metric].mean(), f"{metric}_sd": defined[metric].std()}
            means.append(mean)
    return pd.DataFrame(means)


def over_seeds(means: pd.DataFrame) -> pd.DataFrame:
    """Means over seeds, with their 95 % t intervals.

    Args:
        means: As `by_run` gives them.

    Returns:
        As `means` without seed, with seeds (how many define it) and for each of `METRICS` the mean
        and `<metric>_low`, `<metric>_high`, NaN where there are fewer than two seeds.
    """
    keys = [name for name in RUN if name != "seed"] + ["group"]
    rows = []
    for values, several in means.groupby(keys, sort=False):
        row = dict(zip(keys, values, strict=True)) | {"seeds": int(several["auroc"].count())}
        for metric in METRICS:
            row |= over_values(metric, several[metric])
        rows.append(row)
    return pd.DataFrame(rows)


def over_values(name: str, values: pd.Series) -> dict[str, float]:
    """Mean of the values that are defined, with its 95 % t interval, as `with_ends` has them."""
    found = interval(values.dropna().tolist())
    return with_ends(name) if found is None else with_ends(name, found.mean, found.low, found.high)


def with_ends(
    name: str, value: float | None = None, low: float | None = None, high: float | None = None
) -> dict[str, float]:
    """Columns `<name>`, `<name>_low` and `<name>_high` of a figure; NaN where it has none."""
    ends = np.array((value, low, high), float).tolist()
    return dict(zip((name, f"{name}_low", f"{name}_high"), ends, strict=True))
