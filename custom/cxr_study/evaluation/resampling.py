"""Areas under the ROC and precision-recall curves of a test split's resampled patients."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

if TYPE_CHECKING:
    from scipy import sparse

_CHUNK = 4_000_000  # resamples x images held at a time


class Resamples(NamedTuple):
    """Both areas of each class on each resample of the patients.

    Attributes:
        auroc: Area under the ROC curve, shape (resamples, classes); NaN where a resample leaves a
            class without positives or without negatives.
        auprc: Average precision, likewise.
    """

    auroc: np.ndarray
    auprc: np.ndarray


class _Images(NamedTuple):
    """Images of one class, counted by patient and by where they stand in the order of scores.

    Attributes:
        positives: Shape (scores, patients): the positives at each score that one has, ascending.
        negatives: Shape (2 * scores + 1, patients): the negatives below the first of these scores,
            at it, between it and the second, at the second, and so on.
    """

    positives: sparse.csr_array
    negatives: sparse.csr_array


def resample(
    labels: ArrayLike,
    scores: ArrayLike,
    patients: ArrayLike,
    *,
    resamples: int = 1000,
    seed: int,
) -> Resamples:
    """Both areas of each class on resamples of the patients, each drawn with all its images.

    The resamples depend on the patients, the seed and the number alone: what two models reach on
    them is paired.

    Args:
        labels: 1.0 present, 0.0 absent, NaN not labelled, shape (images, classes). An image
            without a label for a class is left out for that class.
        scores: Finite numbers that rise with the probability of the class, same shape.
        patients: Patient of each image, shape (images,).
        resamples: Number of resamples.
        seed: Seed of the resampling.

    Raises:
        ValueError: The shapes differ, a label is none of 1, 0, NaN, or a score is not finite.
    """
    labels, scores = _checked(labels, scores)
    names, patient = np.unique(np.asarray(patients), return_inverse=True)
    if patient.shape != labels.shape[:1]:
        raise ValueError(
            f"patients needs one entry per image, {len(labels)}; got {patient.shape[0]}."
        )
    classes = [
        _count(labels[:, c], scores[:, c], patient, len(names)) for c in range(labels.shape[1])
    ]
    rng, chances = np.random.default_rng(seed), np.full(len(names), 1 / len(names))
    step = max(1, _CHUNK // max(1, len(labels)))
    auroc, auprc = np.empty((2, resamples, len(classes)))
    for start in range(0, resamples, step):
        rows = slice(start, min(start + step, resamples))
        drawn = rng.multinomial(len(names), chances, size=rows.stop - start)
        times = np.ascontiguousarray(drawn.T, dtype=float)  # how often each patient was drawn
        for c, images in enumerate(classes):
            positives, negatives = images.positives @ times, images.negatives @ times
            auroc[rows, c], auprc[rows, c] = _areas(positives, negatives)
    return Resamples(auroc, auprc)


def _count(labels: np.ndarray, scores: np.ndarray, patient: np.ndarray, patients: int) -> _Images:
    positive, negative = labels == 1, labels == 0
    values, at = np.unique(scores[positive], return_inverse=True)
    among = np.searchsorted(values, scores[negative], side="left")
    among += np.searchsorted(values, scores[negative], side="right")
    return _Images(
        _table(at, patient[positive], (len(values), patients)),
        _table(among, patient[negative], (2 * len(values) + 1, patients)),
    )


def _table(rows: np.ndarray, columns: np.ndarray, shape: tuple[int, int]) -> sparse.csr_array:
    from scipy import sparse  # here, for a training's process imports this module and needs none

    return sparse.csr_array((np.ones(len(rows)), (rows, columns)), shape=shape)


def _areas(positives: np.ndarray, negatives: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """AUROC and average precision from what `_Images` counts, (rows, resamples); (resamples,)."""
    present, absent = positives.sum(axis=0), negatives.sum(axis=0)
    below = np.cumsum(negatives, axis=0)[:-1:2]
    wins = (positives * (below + negatives[1::2] / 2)).sum(axis=0)
    hits = present - np.cumsum(positives, axis=0) + positives  # positives at the score or above
    precision = _ratio(hits, hits + absent - below, positives > 0)
    gained = np.where(positives > 0, positives * precision, 0.0).sum(axis=0)
    defined = (present > 0) & (absent > 0)
    return _ratio(wins, present * absent, defined), _ratio(gained, present, defined)


def _ratio(above: np.ndarray, below: np.ndarray, defined: np.ndarray) -> np.ndarray:
    return np.divide(above, below, out=np.full(above.shape, np.nan), where=defined)


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
