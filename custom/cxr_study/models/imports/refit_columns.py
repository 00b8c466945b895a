"""Columns for classes of another model, fitted on a hospital's own labelled images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cxr_study.evaluation.predictions import Predictions
from surgical_aggregation.aggregation.metrics import auroc
from surgical_aggregation.site.training.column_refit import FeatureSplit, best_refit
from surgical_aggregation.wire.variables import Columns

FEWEST = 20
"""Positive, and negative, training images that a column is fitted on, at least."""


def refit(
    train: Predictions, validation: Predictions, classes: Sequence[str]
) -> tuple[Columns, dict[str, dict[str, Any]]]:
    """Fit a column for each class, from zero on, to what the head weighs.

    Args:
        train: Of the site's training split, predicted by the model that gets the classes.
        validation: Of its validation split, by which the penalty is chosen; see `best_refit`.
        classes: Names, which the site labels.

    Returns:
        The columns by class; and by class, for the manifest, "refit": the site, its numbers of
        training images and positive ones, and the AUROC on its validation split (None: not
        defined).

    Raises:
        ValueError: A class has too few positive or negative training images, or no column predicts
            its validation images better than a constant 0.5 does.
    """
    columns: Columns = {}
    facts: dict[str, dict[str, Any]] = {}
    site = train.images.site
    for name in classes:
        to, by = (
            FeatureSplit(split.features, split.images.labels([name]))
            for split in (train, validation)
        )
        counts = [int((to.labels == value).sum()) for value in (1, 0)]
        if min(counts) < FEWEST:
            raise ValueError(
                f"{name} needs {FEWEST} positive and {FEWEST} negative training images at "
                f"{site} to be fitted; there are {counts[0]} and {counts[1]}."
            )
        nothing = np.zeros((to.features.shape[1], 1), np.float32), np.zeros(1, np.float32)
        kernel, bias, penalty = best_refit(to, by, *nothing)
        if penalty is None:
            raise ValueError(
                f"{name} cannot be fitted: no column is better on the labelled validation images "
                f"of {site} than to say 0.5 of each. Are there such images, labelled alike?"
            )
        columns[name] = (kernel[:, 0], bias)
        (score,) = auroc(by.labels, by.features @ kernel + bias)
        made = {"site": site, "images": sum(counts), "positives": counts[0]}
        facts[name] = {"refit": {**made, "auroc": None if np.isnan(score) else float(score)}}
    return columns, facts
