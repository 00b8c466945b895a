"""Calibration of probabilities: reliability bins and the expected calibration error.

Labels and probabilities are those of one class, shape (images,), or of several classes pooled,
shape (images, classes).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from surgical_aggregation.aggregation.metrics import Floats


@dataclass(frozen=True)
class Bin:
    """Predictions whose probabilities are in one interval.

    Attributes:
        low: Lower end of the interval, which is not included, except for 0.
        high: Upper end, which is included.
        predictions: Number of predictions with a label.
        probability: Mean of their probabilities; None if there is no prediction.
        observed: Share of them whose label is positive; None if there is no prediction.
    """

    low: float
    high: float
    predictions: int
    probability: float | None
    observed: float | None


def reliability(labels: Floats, probabilities: Floats, number: int = 10) -> tuple[Bin, ...]:
    """Sort predictions into bins of equal width.

    Args:
        labels: 1, 0 or NaN (not labelled: left out).
        probabilities: Of the positive label, in [0, 1], same shape.
        number: Number of bins. Default 10.

    Returns:
        The bins, from 0 to 1.

    Raises:
        ValueError: A probability is not in [0, 1].

    Example:
        >>> reliability(np.array([1.0, 0.0, 1.0]), np.array([0.8, 0.1, 0.6]), number=2)[1]
        Bin(low=0.5, high=1.0, predictions=2, probability=0.7, observed=1.0)
    """
    labelled = ~np.isnan(labels)
    known, predicted = labels[labelled] == 1, probabilities[labelled].astype(np.float64)
    wrong = ~((predicted >= 0) & (predicted <= 1))
    if wrong.any():
        raise ValueError(
            f"probabilities need to be between 0 and 1; got {predicted[wrong][0]}. Are they scores?"
        )
    edges = np.linspace(0, 1, number + 1)
    at = np.searchsorted(edges[1:-1], predicted)
    predictions = np.bincount(at, minlength=number)
    sums = [np.bincount(at, each, minlength=number).tolist() for each in (predicted, known)]
    rows = zip(edges.tolist(), edges[1:].tolist(), predictions.tolist(), *sums, strict=False)
    return tuple(
        Bin(low, high, count, *((total / count, positives / count) if count else (None, None)))
        for low, high, count, total, positives in rows
    )


def calibration_error(bins: Sequence[Bin]) -> float | None:
    """Expected calibration error: the deviation of the bins, weighted by their predictions.

        ECE = sum(n_b * |observed_b - probability_b|) / sum(n_b)

    Args:
        bins: As `reliability` returns them.

    Returns:
        Between 0 and 1; None (not defined) if there is no prediction.

    Source:
        Naeini, Cooper and Hauskrecht, Obtaining Well Calibrated Probabilities Using Bayesian
        Binning, AAAI 2015.
    """
    predictions = sum(each.predictions for each in bins)
    if not predictions:
        return None
    deviations = [
        each.predictions * abs(each.observed - each.probability)
        for each in bins
        if each.observed is not None and each.probability is not None
    ]
    return sum(deviations) / predictions
