"""Columns for classes of another model, fitted on a hospital's own labelled images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cxr_study.models.labelled_predictions import LabelledPredictions
from surgical_aggregation.aggregation.metrics import Floats, auroc
from surgical_aggregation.wire.variables import Columns

FEWEST = 20
"""Positive, and negative, training images that a column is fitted on, at least."""

_FOLDS = 5
_STRENGTHS = np.logspace(-4, 2, 13)  # inverse of the penalty; chosen by cross-validation


class RefitError(ValueError):
    """A column cannot be fitted."""


def refit(
    train: LabelledPredictions, validation: LabelledPredictions, classes: Sequence[str]
) -> tuple[Columns, dict[str, dict[str, Any]]]:
    """Fit a logistic regression for each class on what the head weighs.

    The strength of its penalty is chosen by cross-validation over patients.

    Args:
        train: Of the site's training split, predicted by the model that gets the classes.
        validation: Of its validation split; only measured.
        classes: Names, which the site labels.

    Returns:
        The columns by class; and by class, for the manifest, "refit": the site, its numbers of
        training images and positive ones, and the AUROC on its validation split (None: not
        defined).

    Raises:
        RefitError: A class has too few positive or negative training images.
    """
    columns: Columns = {}
    facts: dict[str, dict[str, Any]] = {}
    for name in classes:
        labels = _labels(train, name)
        known = ~np.isnan(labels)
        counts = [int((labels == value).sum()) for value in (1, 0)]
        if min(counts) < FEWEST:
            raise RefitError(
                f"{name} needs {FEWEST} positive and {FEWEST} negative training images at "
                f"{train.site} to be fitted; there are {counts[0]} and {counts[1]}."
            )
        groups = train.patients.to_numpy()[known]
        kernel, bias = _fitted(train.features[known], labels[known], groups)
        columns[name] = (kernel, bias)
        score = _score(_labels(validation, name), validation.features @ kernel + bias)
        made = {"site": train.site, "images": sum(counts), "positives": counts[0], "auroc": score}
        facts[name] = {"refit": made}
    return columns, facts


def _labels(data: LabelledPredictions, name: str) -> Floats:
    if name not in data.labels:
        return np.full(len(data.labels), np.nan)
    return data.labels[name].to_numpy(float)


def _fitted(features: Floats, labels: Floats, patients: Floats) -> tuple[Floats, Floats]:
    """Kernel (features,) and bias (1,), float32."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV, StratifiedGroupKFold
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler().fit(features)
    folds = StratifiedGroupKFold(_FOLDS, shuffle=True, random_state=0)
    line = GridSearchCV(
        LogisticRegression(max_iter=5000),
        {"C": _STRENGTHS},
        cv=list(folds.split(features, labels, patients)),
        scoring="neg_log_loss",
    )
    best = line.fit(scaler.transform(features), labels).best_estimator_
    kernel = best.coef_[0] / scaler.scale_
    bias = best.intercept_ - kernel @ scaler.mean_
    return kernel.astype(np.float32), bias.astype(np.float32)


def _score(labels: Floats, scores: Floats) -> float | None:
    (value,) = auroc(labels[:, None], scores[:, None])
    return None if np.isnan(value) else float(value)
