"""Bootstrap intervals of the area under the ROC curve, over patients."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

_MIN_DEFINED = 0.9  # share of the resamples that must define a class for it to have an interval
_CHUNK = 4_000_000  # resamples x images held at a time


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
        labels: 1.0 present, 0.0 absent, NaN not labelled, shape (images, classes). An image
            without a label for a class is left out for that class.
        scores: Finite numbers that rise with the probability of the class, same shape.
        patients: Patient of each image, shape (images,).
        resamples: Number of resamples.
        seed: Seed of the resampling.
        level: Coverage, between 0 and 1.

    Returns:
        The interval; NaN where not defined.

    Raises:
        ValueError: The shapes differ, a label is none of 1, 0, NaN, or a score is not finite.

    Source:
        Efron and Tibshirani, An Introduction to the Bootstrap, 1993, chapter 13.
    """
    labels, scores = _checked(labels, scores)
    names, patient = np.unique(np.asarray(patients), return_inverse=True)
    if patient.shape != labels.shape[:1]:
        raise ValueError(
            f"patients needs one entry per image, {len(labels)}; got {patient.shape[0]}."
        )
    rng = np.random.default_rng(seed)
    step = max(1, _CHUNK // max(1, len(labels)))
    values = []
    for start in range(0, resamples, step):
        draws = min(step, resamples - start)
        times = rng.multinomial(len(names), np.full(len(names), 1 / len(names)), size=draws)
        weights = times[:, patient].astype(float)  # how often each image is in each resample
        values.append(
            np.column_stack(
                [
                    _weighted_auroc(labels[:, c], scores[:, c], weights)
                    for c in range(labels.shape[1])
                ]
            )
        )
    per_class = np.concatenate(values)
    tails = [50 * (1 - level), 50 * (1 + level)]
    # A rare class stays in the mean, whose value it is part of, also where it has no interval.
    mean_ends = _percentiles(np.array([mean_defined(row) for row in per_class]), tails)
    per_class[:, (~np.isnan(per_class)).mean(axis=0) < _MIN_DEFINED] = np.nan
    ends = np.array([_percentiles(column, tails) for column in per_class.T])
    return Interval(ends[:, 0], ends[:, 1], float(mean_ends[0]), float(mean_ends[1]))


def _weighted_auroc(labels: np.ndarray, scores: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """AUROC of one class, images counting `weights` (resamples, images) times; (resamples,)."""
    order = np.argsort(scores)
    order = order[~np.isnan(labels[order])]
    if not order.size:
        return np.full(len(weights), np.nan)
    weights, present, scores = weights[:, order], labels[order] == 1, scores[order]
    tied = np.flatnonzero(np.r_[True, scores[1:] > scores[:-1]])  # where each tied group starts
    positives = np.add.reduceat(weights * present, tied, axis=1)
    negatives = np.add.reduceat(weights * ~present, tied, axis=1)
    below = np.cumsum(negatives, axis=1) - negatives / 2
    return _ratio((positives * below).sum(axis=1), positives.sum(axis=1) * negatives.sum(axis=1))


def _ratio(wins: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    return np.divide(wins, pairs, out=np.full(len(pairs), np.nan), where=pairs > 0)


def _percentiles(values: np.ndarray, tails: list[float]) -> np.ndarray:
    values = values[~np.isnan(values)]
    return np.percentile(values, tails) if values.size else np.full(2, np.nan)


def _checked(labels: ArrayLike, scores: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    labels, scores = np.asarray(labels, dtype=float), np.asarray(scores, dtype=float)
    if labels.ndim != 2 or labels.shape != scores.shape:
        raise ValueError(
            "labels and scores need one shape (images, classes); got "
            f"{labels.shape} and {scores.shape}."
        )
    if not np.all((labels == 0) | (labels == 1) | np.isnan(labels)):
        raise ValueError("labels need to be 0, 1 or NaN; decide on uncertain ones before scoring.")
    if not np.all(np.isfinite(scores)):
        raise ValueError(
            f"scores need to be finite; {np.sum(~np.isfinite(scores))} are not. Did training fail?"
        )
    return labels, scores
