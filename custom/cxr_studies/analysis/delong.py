"""DeLong's test of two correlated areas under the ROC curve.

It takes images for independent. Where patients have several images they are not, and the interval
comes out too narrow, p too small: the bootstrap by patient (`bootstrap`) accounts for it.

Sources:
    DeLong, DeLong and Clarke-Pearson, Comparing the Areas under Two or More Correlated Receiver
    Operating Characteristic Curves: A Nonparametric Approach, Biometrics 44, 1988, 837-845.

    Sun and Xu, Fast Implementation of DeLong's Algorithm for Comparing the Areas Under Correlated
    Receiver Operating Characteristic Curves, IEEE Signal Processing Letters 21, 2014, 1389-1393:
    the same by midranks, in O(n log n).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.stats import norm, rankdata

from cxr_study.evaluation.bootstrap import CONFIDENCE
from surgical_aggregation.aggregation.metrics import Floats

_FEWEST = 2  # positives, and negatives: a variance among fewer is not defined
_ROUNDING = 1e-28  # a variance below it is that of equal numbers


@dataclass(frozen=True)
class DelongTest:
    """Two AUROCs of one class on the same images, compared.

    Attributes:
        difference: First area minus second, with the ends of its 95 % interval, `low` and `high`.
        error: Standard error of the difference.
        z: Difference over its standard error; 0 where the two rank all pairs of a positive and a
            negative alike. None where the areas differ but their difference has no variance.
        p: Two-sided; 1 where z is 0, None where z is None.
    """

    first: float
    second: float
    difference: float
    error: float
    low: float
    high: float
    z: float | None
    p: float | None


def delong_test(labels: Floats, first: Floats, second: Floats) -> DelongTest | None:
    """Test whether two models have the same AUROC on the same images; two-sided.

    Args:
        labels: 1, 0 or NaN (not labelled: left out), shape (images,).
        first: Scores of the one model, same shape.
        second: Scores of the other.

    Returns:
        None, "not defined", with fewer than two positives or two negatives, or with a score that
        is NaN (a model lacks the class).
    """
    one, other = _placements(labels, first), _placements(labels, second)
    if one is None or other is None:
        return None
    areas = float(one[0].mean()), float(other[0].mean())
    difference = areas[0] - areas[1]
    error = _error(one[0] - other[0], one[1] - other[1])
    z: float | None
    if error:
        z = difference / error
    else:
        z = 0.0 if math.isclose(difference, 0, abs_tol=1e-12) else None
    half = float(norm.ppf((1 + CONFIDENCE) / 2)) * error
    p = None if z is None else float(2 * norm.sf(abs(z)))
    return DelongTest(*areas, difference, error, difference - half, difference + half, z, p)


def _placements(labels: Floats, scores: Floats) -> tuple[Floats, Floats] | None:
    """Shares of the negatives below each positive, and of the positives below each negative."""
    positives, negatives = scores[labels == 1], scores[labels == 0]
    m, n = len(positives), len(negatives)
    together = np.concatenate([positives, negatives])
    if min(m, n) < _FEWEST or np.isnan(together).any():
        return None
    ranks = rankdata(together)
    return (ranks[:m] - rankdata(positives)) / n, (ranks[m:] - rankdata(negatives)) / m


def _error(positives: Floats, negatives: Floats) -> float:
    """Standard error of the mean placement, or difference of placements."""
    variance = positives.var(ddof=1) / len(positives) + negatives.var(ddof=1) / len(negatives)
    return math.sqrt(variance) if variance > _ROUNDING else 0.0
