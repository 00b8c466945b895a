"""How far the figures of a report may be off: over classes, and over patients.

Over seeds it is `seed_intervals.interval`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.metrics import average_precision_score

from cxr_study.evaluation.bootstrap import mean_defined, percentile_ends
from cxr_study.evaluation.resampling import resample
from surgical_aggregation.aggregation.metrics import Floats, auroc

Metric = Literal["auroc", "auprc"]
"""Area under the ROC curve, and average precision (area under the precision-recall curve)."""


@dataclass(frozen=True)
class Spread:
    """A mean with the standard deviation about it.

    Attributes:
        mean: Over the values that are defined.
        sd: Of the sample, n - 1 in the denominator; None of one value.
        values: How many are defined.
    """

    mean: float
    sd: float | None
    values: int


@dataclass(frozen=True)
class Estimate:
    """A figure on a test split with its 95 % bootstrap interval by patient.

    Attributes:
        value: On the split itself.
        low: Lower end, a percentile of the resamples; None where none of them defines the figure.
        high: Upper end, likewise.
        classes: Over how many classes it is the mean.
    """

    value: float
    low: float | None
    high: float | None
    classes: int


@dataclass(frozen=True, eq=False)
class ResampledModel:
    """A model on a test split, class by class, and on resamples of the split's patients.

    Attributes:
        classes: The model's, of which the split has labels.
        values: Metric -> on the split, shape (classes,); NaN where it has no positives or no
            negatives.
        drawn: Metric -> on each resample, shape (resamples, classes); NaN likewise.
        patients: Of each image.
        seed: Of the resampling.
    """

    classes: tuple[str, ...]
    values: dict[Metric, np.ndarray]
    drawn: dict[Metric, np.ndarray]
    patients: np.ndarray
    seed: int


def spread(values: Sequence[float | None]) -> Spread | None:
    """Mean and standard deviation over classes, or over the runs of an ablation.

    The papers write mean ± SD and not which; the sample's, as it is here, is the usual one. With
    14 classes the population's is 4 % less.

    Args:
        values: None or NaN where not defined; those are left out. Whether a mean may go without
            them is for the caller to say: in the papers it may not where a model lacks the class.

    Returns:
        None where no value is defined.
    """
    defined = [v for v in values if v is not None and not np.isnan(v)]
    if not defined:
        return None
    return Spread(fmean(defined), stdev(defined) if len(defined) > 1 else None, len(defined))


def resample_model(
    labels: Floats,
    scores: Floats,
    classes: Sequence[str],
    patients: ArrayLike,
    *,
    seed: int,
    resamples: int = 1000,
) -> ResampledModel:
    """Measure a model on a test split and on resamples of its patients.

    What two models reach with the same patients, seed and number is paired.

    Args:
        labels: 1, 0 or NaN (not labelled: left out), shape (images, classes).
        scores: Finite numbers that rise with the probability of the class, same shape.
        classes: Name of each column. A class that the model lacks has no column.
        patients: Patient of each image, shape (images,).
        seed: Seed of the resampling.
        resamples: Number of resamples.

    Raises:
        ValueError: The shapes differ, a label is none of 1, 0, NaN, or a score is not finite.
    """
    drawn = resample(labels, scores, patients, resamples=resamples, seed=seed)
    areas = auroc(labels, scores)
    precisions = np.full(len(classes), np.nan)
    for c in np.flatnonzero(~np.isnan(areas)):
        known = ~np.isnan(labels[:, c])
        precisions[c] = average_precision_score(labels[known, c], scores[known, c])
    return ResampledModel(
        tuple(classes),
        {"auroc": areas, "auprc": precisions},
        {"auroc": drawn.auroc, "auprc": drawn.auprc},
        np.asarray(patients),
        seed,
    )


def mean_interval(model: ResampledModel, metric: Metric, classes: Sequence[str]) -> Estimate | None:
    """Mean of a metric over classes with its 95 % bootstrap interval by patient.

    Args:
        model: As `resample_model` gives it.
        metric: Which.
        classes: Over which. One without positives or without negatives is left out, in the split
            and in each resample.

    Returns:
        None, "not defined", where the model lacks one of the classes or the split defines none.
    """
    return _estimate(_columns(model, metric, classes))


def difference_interval(
    first: ResampledModel, second: ResampledModel, metric: Metric, classes: Sequence[str]
) -> Estimate | None:
    """Difference of two models' means over classes, first minus second, on the same resamples.

    Args:
        first: As `resample_model` gives it.
        second: On the same split, with the same seed and number of resamples.
        metric: Which.
        classes: Over which; see `mean_interval`.

    Returns:
        None, "not defined", where a model lacks one of the classes or the split defines none.

    Raises:
        ValueError: The two were not resampled alike.
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
    return _estimate(None if one is None or other is None else one - other)


def _columns(model: ResampledModel, metric: Metric, classes: Sequence[str]) -> np.ndarray | None:
    """Of classes, the metric on the split and then on each resample, (1 + resamples, classes)."""
    if not set(classes) <= set(model.classes):
        return None
    columns = [model.classes.index(name) for name in classes]
    return np.vstack([model.values[metric], model.drawn[metric]])[:, columns]


def _estimate(rows: np.ndarray | None) -> Estimate | None:
    if rows is None or np.isnan(rows[0]).all():
        return None
    drawn = np.ma.masked_invalid(rows[1:]).mean(axis=1).filled(np.nan)
    low, high = (None if np.isnan(end) else end for end in percentile_ends(drawn))
    return Estimate(mean_defined(rows[0]), low, high, int((~np.isnan(rows[0])).sum()))
