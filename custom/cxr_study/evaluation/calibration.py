"""Whether probabilities are as often right as they say: reliability bins and their errors.

Every function takes one class, shape (images,), or several pooled, shape (images, classes).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from surgical_aggregation.aggregation.metrics import Floats


@dataclass(frozen=True)
class Bin:
    """Predictions of about the same probability.

    Attributes:
        low: Lower end of the bin, itself not in it, except 0.
        high: Upper end, in it.
        predictions: How many there are with a label.
        probability: Their mean; None without a prediction.
        observed: Share of them that is positive; None without a prediction.
    """

    low: float
    high: float
    predictions: int
    probability: float | None
    observed: float | None


def reliability(labels: Floats, probabilities: Floats, number: int = 10) -> tuple[Bin, ...]:
    """Predictions sorted into bins of equal width.

    Args:
        labels: 1, 0 or NaN (not labelled: left out).
        probabilities: In [0, 1], of the positive label, same shape.
        number: Of bins.

    Returns:
        From 0 to 1.

    Raises:
        ValueError: A probability is not in [0, 1].
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
    sums = [np.bincount(at, each, minlength=number) for each in (predicted, known)]
    rows = zip(edges.tolist(), edges[1:].tolist(), predictions.tolist(), *sums, strict=False)
    return tuple(
        Bin(low, high, count, *((mean / count, there / count) if count else (None, None)))
        for low, high, count, mean, there in rows
    )


def calibration_error(bins: Sequence[Bin]) -> float | None:
    """Expected calibration error: how far bins are off, each counting by its predictions.

        sum(n_b * |observed_b - probability_b|) / sum(n_b)

    Returns:
        Between 0 and 1; None, "not defined", without a prediction.

    Source:
        Naeini, Cooper and Hauskrecht, Obtaining Well Calibrated Probabilities Using Bayesian
        Binning, AAAI 2015.
    """
    predictions = sum(each.predictions for each in bins)
    if not predictions:
        return None
    off = [
        each.predictions * abs(each.observed - each.probability)
        for each in bins
        if each.observed is not None and each.probability is not None
    ]
    return sum(off) / predictions
