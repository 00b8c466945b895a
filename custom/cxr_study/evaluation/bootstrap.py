"""Patient-level bootstrap of a model's AUROC and average precision.

Patients are drawn with replacement, each with all of their images. The resamples depend only on the
patients, the seed and their number, so those of two models are paired. One set of resamples gives
the interval of each class, of the mean over any group of classes, and of the difference between two
models.

Source:
    Efron and Tibshirani, An Introduction to the Bootstrap, 1993, chapter 13.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from surgical_aggregation.aggregation.metrics import auroc

if TYPE_CHECKING:
    from scipy import sparse

Metric = Literal["auroc", "auprc"]
"""Area under the ROC curve, and average precision (area under the precision-recall curve)."""

CONFIDENCE = 0.95
"""Nominal coverage of every interval."""

FEWEST = 10
"""Patients with a positive image, and with a negative one, that an interval needs.

With so many its coverage is 0.9 on average over AUROCs of 0.6 to 0.9; with 3 it is 0.74
(tests/benchmarks/interval_coverage.py of commit ca7468c).
"""

_CHUNK = 4_000_000  # resamples x images in memory at a time


@dataclass(frozen=True, eq=False)
class Resampled:
    """A model's metrics per class, on a test split and on resamples of its patients.

    Attributes:
        classes: The model's classes for which the split has labels.
        values: Metric -> value on the split, float64 (classes,); NaN if the split has no positives
            or no negatives of the class.
        drawn: Metric -> value on each resample, float64 (resamples, classes); NaN likewise.
        fewest: The smaller of the numbers of patients with a positive and with a negative image,
            int (classes,).
        patients: Patient of each image of the split, shape (images,).
        seed: Of the resampling.
    """

    classes: tuple[str, ...]
    values: dict[Metric, np.ndarray]
    drawn: dict[Metric, np.ndarray]
    fewest: np.ndarray
    patients: np.ndarray
    seed: int

    def with_interval(self, classes: Sequence[str]) -> list[str]:
        """Select the classes with at least `FEWEST` patients, which therefore have an interval."""
        known = dict(zip(self.classes, self.fewest, strict=True))
        return [name for name in classes if known.get(name, 0) >= FEWEST]


@dataclass(frozen=True)
class Estimate:
    """The mean of a metric over classes on a test split, or the difference of two such means.

    Attributes:
        value: The mean or difference.
        low: Lower end of its 95 % bootstrap interval by patient; None if one of the classes has
            fewer than `FEWEST` patients, because resamples without the class have another mean.
        high: Upper end; None likewise.
        classes: Number of classes in the mean.
    """

    value: float
    low: float | None
    high: float | None
    classes: int


def resample(
    labels: ArrayLike,
    scores: ArrayLike,
    classes: Sequence[str],
    patients: ArrayLike,
    *,
    seed: int,
    resamples: int = 1000,
) -> Resampled:
    """Measure a model on a test split and on resamples of its patients.

    Args:
        labels: 1.0 present, 0.0 absent, NaN not labelled, shape (images, classes). An image
            without a label for a class is left out for that class.
        scores: Finite numbers that increase with the probability of the class, same shape.
        classes: Name of each column. A class that the model lacks has no column.
        patients: Patient of each image, shape (images,); any type that NumPy can sort.
        seed: Of the resampling.
        resamples: Number of resamples. Default 1000.

    Returns:
        The metrics; equal for equal arguments, bit for bit.

    Raises:
        ValueError: The shapes differ, a label is none of 1, 0, NaN, or a score is not finite.

    Example:
        >>> model = resample([[1], [0], [1]], [[0.9], [0.2], [0.7]], ["Edema"], [7, 8, 9], seed=0)
        >>> model.values["auroc"], model.fewest
        (array([1.]), array([1]))
    """
    labels, scores = _checked(labels, scores)
    names, patient = np.unique(np.asarray(patients), return_inverse=True)
    if patient.shape != labels.shape[:1]:
        raise ValueError(
            f"patients needs one entry per image, {len(labels)}; got {patient.shape[0]}."
        )
    counted = [
        _count(labels[:, c], scores[:, c], patient, len(names)) for c in range(labels.shape[1])
    ]
    rng, chances = np.random.default_rng(seed), np.full(len(names), 1 / len(names))
    step = max(1, _CHUNK // max(1, len(labels)))
    shape = resamples, len(counted)
    drawn: dict[Metric, np.ndarray] = {"auroc": np.empty(shape), "auprc": np.empty(shape)}
    for start in range(0, resamples, step):
        rows = slice(start, min(start + step, resamples))
        times = rng.multinomial(len(names), chances, size=rows.stop - start)
        times = np.ascontiguousarray(times.T, dtype=float)  # how often each patient was drawn
        for c, images in enumerate(counted):
            areas = _areas(images.positives @ times, images.negatives @ times)
            drawn["auroc"][rows, c], drawn["auprc"][rows, c] = areas
    values, fewest = _values(labels, scores), [each.fewest_patients() for each in counted]
    patients = np.asarray(patients)
    return Resampled(tuple(classes), values, drawn, np.array(fewest, int), patients, seed)


def class_intervals(model: Resampled, metric: Metric) -> list[tuple[float, float]]:
    """95 % percentile interval of each class.

    Args:
        model: On its resamples.
        metric: Which metric.

    Returns:
        Lower and upper end per class, in the order of `model.classes`; NaN for a class with fewer
        than `FEWEST` patients, and for one with the same value on every resample, as with an AUROC
        of 1.0: the resamples say nothing about its precision.
    """
    drawn = model.drawn[metric]
    constant = np.nanmin(drawn, axis=0, initial=np.inf) == np.nanmax(drawn, axis=0, initial=-np.inf)
    drawn = np.where(constant | (model.fewest < FEWEST), np.nan, drawn)
    return [percentile_interval(column) for column in drawn.T]


def mean_interval(model: Resampled, metric: Metric, classes: Sequence[str]) -> Estimate | None:
    """Mean of a metric over classes, with its 95 % bootstrap interval by patient.

    Args:
        model: On its resamples.
        metric: Which metric.
        classes: Names. A class without positives or without negatives in the split is left out.

    Returns:
        None (not defined) if the model lacks one of the classes, or the metric is defined for none.
    """
    rows = _columns(model, metric, classes)
    return None if rows is None else _estimate(rows, model.with_interval(classes), rows)


def difference_interval(
    first: Resampled, second: Resampled, metric: Metric, classes: Sequence[str]
) -> Estimate | None:
    """Difference of two models' means over classes, first minus second, on the same resamples.

    Args:
        first: A model on its resamples.
        second: Another model, resampled with the same patients, seed and number.
        metric: Which metric.
        classes: Names; as in `mean_interval`.

    Returns:
        None (not defined) if a model lacks one of the classes, or the metric is defined for none.

    Raises:
        ValueError: The two have different patients, seeds or numbers of resamples.
    """
    alike = first.seed == second.seed and np.array_equal(first.patients, second.patients)
    if not alike or len(first.drawn[metric]) != len(second.drawn[metric]):
        raise ValueError(
            "first and second need the same patients, seed and number of resamples; got seeds "
            f"{first.seed} and {second.seed}, {len(first.patients)} and {len(second.patients)} "
            f"images, {len(first.drawn[metric])} and {len(second.drawn[metric])} resamples. "
            "Resample both models alike."
        )
    one, other = _columns(first, metric, classes), _columns(second, metric, classes)
    if one is None or other is None:
        return None
    return _estimate(one - other, first.with_interval(classes), one, other)


def percentile_interval(values: ArrayLike) -> tuple[float, float]:
    """95 % percentile interval of values.

    Args:
        values: Any shape; NaN is left out.

    Returns:
        The 2.5th and the 97.5th percentile; NaN if there is no value.

    Example:
        >>> percentile_interval([1.0] * 99 + [np.nan])
        (1.0, 1.0)
    """
    defined = np.asarray(values, dtype=float)
    defined = defined[~np.isnan(defined)]
    if not defined.size:
        return np.nan, np.nan
    low, high = np.percentile(defined, [50 * (1 - CONFIDENCE), 50 * (1 + CONFIDENCE)])
    return float(low), float(high)


def _columns(model: Resampled, metric: Metric, classes: Sequence[str]) -> np.ndarray | None:
    """The metric of classes on the split (first row) and on each resample, float64.

    Returns:
        Shape (1 + resamples, classes); None if the model lacks one of the classes.
    """
    if not set(classes) <= set(model.classes):
        return None
    columns = [model.classes.index(name) for name in classes]
    return np.vstack([model.values[metric], model.drawn[metric]])[:, columns]


def _means(rows: np.ndarray) -> np.ndarray:
    """Mean over classes of each resample; NaN where none is defined."""
    return np.ma.masked_invalid(rows[1:]).mean(axis=1).filled(np.nan)


def _estimate(rows: np.ndarray, enough: Sequence[str], *models: np.ndarray) -> Estimate | None:
    """Estimate from rows that were made of the models' rows; see `class_intervals`."""
    if np.isnan(rows[0]).all():
        return None
    defined = int((~np.isnan(rows[0])).sum())
    varies = any(len(np.unique(means[~np.isnan(means)])) > 1 for means in map(_means, models))
    ends = percentile_interval(_means(rows) if varies and defined == len(enough) else np.nan)
    low, high = (None if np.isnan(end) else end for end in ends)
    return Estimate(float(np.nanmean(rows[0])), low, high, defined)


def _values(labels: np.ndarray, scores: np.ndarray) -> dict[Metric, np.ndarray]:
    """Both areas of each class on the split itself."""
    from sklearn.metrics import average_precision_score  # slow; every command imports this module

    areas = auroc(labels, scores)
    precisions = np.full(len(areas), np.nan)
    for c in np.flatnonzero(~np.isnan(areas)):
        known = ~np.isnan(labels[:, c])
        precisions[c] = average_precision_score(labels[known, c], scores[known, c])
    return {"auroc": areas, "auprc": precisions}


class _Images(NamedTuple):
    """Number of images of one class, by patient and by rank of the score.

    Ranks refer to the distinct scores of the positive images, ascending.

    Attributes:
        positives: Shape (scores, patients): positives at each of these scores.
        negatives: Shape (2 * scores + 1, patients): negatives below the first of these scores, at
            it, between it and the second, at the second, and so on.
    """

    positives: sparse.csr_array
    negatives: sparse.csr_array

    def fewest_patients(self) -> int:
        """The smaller of the numbers of patients with a positive and with a negative image."""
        return min(len(np.unique(each.indices)) for each in self)


def _count(labels: np.ndarray, scores: np.ndarray, patient: np.ndarray, patients: int) -> _Images:
    """Count the images of one class; `patient` is the index of each image's patient."""
    positive, negative = labels == 1, labels == 0
    values, positive_rank = np.unique(scores[positive], return_inverse=True)
    negative_rank = np.searchsorted(values, scores[negative], side="left")
    negative_rank += np.searchsorted(values, scores[negative], side="right")
    return _Images(
        _count_pairs(positive_rank, patient[positive], (len(values), patients)),
        _count_pairs(negative_rank, patient[negative], (2 * len(values) + 1, patients)),
    )


def _count_pairs(rows: np.ndarray, columns: np.ndarray, shape: tuple[int, int]) -> sparse.csr_array:
    """How often each pair of row and column occurs."""
    from scipy import sparse  # slow; training processes import this module and do not need it

    return sparse.csr_array((np.ones(len(rows)), (rows, columns)), shape=shape)


def _areas(positives: np.ndarray, negatives: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """AUROC and average precision of one class on resamples.

    With p_s positives and n_s negatives at score s in a resample, P positives and N negatives,

        AUROC = sum_s p_s * (sum_{t<s} n_t + n_s / 2) / (P * N)
        AP    = sum_s p_s * precision_s / P,  precision_s over the images with a score of s or above

    Args:
        positives: Counts as in `_Images`, times how often each patient is drawn: (rows, resamples).
        negatives: Likewise.

    Returns:
        Both of shape (resamples,); NaN for a resample without positives or without negatives.
    """
    present, absent = positives.sum(axis=0), negatives.sum(axis=0)
    below = np.cumsum(negatives, axis=0)[:-1:2]
    wins = (positives * (below + negatives[1::2] / 2)).sum(axis=0)
    hits = present - np.cumsum(positives, axis=0) + positives  # positives at the score or above
    precision = _ratio(hits, hits + absent - below, positives > 0)
    gained = np.where(positives > 0, positives * precision, 0.0).sum(axis=0)
    defined = (present > 0) & (absent > 0)
    return _ratio(wins, present * absent, defined), _ratio(gained, present, defined)


def _ratio(numerator: np.ndarray, denominator: np.ndarray, defined: np.ndarray) -> np.ndarray:
    """Element-wise quotient, float64; NaN where it is not defined."""
    quotient = np.full(numerator.shape, np.nan)
    np.divide(numerator, denominator, out=quotient, where=defined)
    return quotient


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
