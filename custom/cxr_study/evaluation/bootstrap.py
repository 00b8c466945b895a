"""Bootstrap intervals of the area under the ROC curve, over patients."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from cxr_study.evaluation.resampling import resample

_MIN_DEFINED = 0.9  # share of the resamples that must define a class for it to have an interval


class Interval(NamedTuple):
    """Bootstrap interval of the AUROC of each class and of their mean.

    Attributes:
        low: Lower ends, shape (classes,); NaN where not defined.
        high: Upper ends, shape (classes,); NaN where not defined.
        mean_low: Lower end for the mean over the classes that are defined.
        mean_high: Upper end likewise.
    """

    low: np.ndarray
    high: np.ndarray
    mean_low: float
    mean_high: float


def mean_defined(values: ArrayLike) -> float:
    """Mean over the classes that are defined (not NaN); NaN when none is."""
    defined = np.asarray(values, dtype=float)
    defined = defined[~np.isnan(defined)]
    return float(defined.mean()) if defined.size else np.nan


def bootstrap_auroc(
    labels: ArrayLike,
    scores: ArrayLike,
    patients: ArrayLike,
    *,
    resamples: int = 1000,
    seed: int,
    level: float = 0.95,
) -> Interval:
    """Percentile bootstrap interval of each class's AUROC, resampling patients with their images.

    A resample that leaves a class without positives or without negatives does not count for that
    class; a class that fewer than 90 % of the resamples define has no interval. The mean is taken
    in each resample over the classes that it defines.

    Args:
        labels: As `resample` takes them, like the next four.
        scores: See there.
        patients: See there.
        resamples: See there.
        seed: See there.
        level: Coverage, between 0 and 1.

    Returns:
        The interval; NaN where not defined.

    Raises:
        ValueError: The shapes differ, a label is none of 1, 0, NaN, or a score is not finite.

    Source:
        Efron and Tibshirani, An Introduction to the Bootstrap, 1993, chapter 13.
    """
    per_class = resample(labels, scores, patients, resamples=resamples, seed=seed).auroc
    # A rare class stays in the mean, whose value it is part of, also where it has no interval.
    mean_ends = percentile_ends([mean_defined(row) for row in per_class], level)
    per_class[:, (~np.isnan(per_class)).mean(axis=0) < _MIN_DEFINED] = np.nan
    ends = np.array([percentile_ends(column, level) for column in per_class.T])
    return Interval(ends[:, 0], ends[:, 1], *mean_ends)


def percentile_ends(values: ArrayLike, level: float = 0.95) -> tuple[float, float]:
    """Ends of the percentile interval of resampled values; NaN ones do not count.

    Args:
        values: One per resample.
        level: Coverage, between 0 and 1.

    Returns:
        Lower and upper end; NaN when no resample defines the value.
    """
    defined = np.asarray(values, dtype=float)
    defined = defined[~np.isnan(defined)]
    if not defined.size:
        return np.nan, np.nan
    low, high = np.percentile(defined, [50 * (1 - level), 50 * (1 + level)])
    return float(low), float(high)
