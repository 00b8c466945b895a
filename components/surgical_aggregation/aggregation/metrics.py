"""Per-class binary cross-entropy and area under the ROC curve."""

import math
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surgical_aggregation.aggregation.class_names import unfit
from surgical_aggregation.aggregation.site_result import Limits, received

__all__ = ["auroc"]

Floats = NDArray[np.floating]

IMAGES, POSITIVES, NEGATIVES = "images", "positives", "negatives"

_EPSILON = 1e-7  # as Keras: probabilities of exactly 0 or 1 must not give an infinite loss

LARGEST_BCE = 1e-6 - math.log(_EPSILON)
"""Largest mean binary cross-entropy of clipped probabilities: 16.118."""

COUNTS = (IMAGES, POSITIVES, NEGATIVES)
"""Metrics that are whole numbers."""

_MOST = 2.0**53  # up to there a float has every whole number

REPORTED = {
    "bce": (LARGEST_BCE, True), "auroc": (1.0, True), IMAGES: (_MOST, False),
    POSITIVES: (_MOST, True), NEGATIVES: (_MOST, True), "train_loss": (math.inf, False),
    "warmed_up": (math.inf, False), "validate_seconds": (math.inf, False),
    "train_seconds": (math.inf, False),
}  # fmt: skip
"""What a site may report: first part of a name -> (largest value, whether it exists per class).

Values are 0 or more, and finite."""

_MOST_DECIMALS = 3  # of an AUROC, if counts may not leave the site


def bce(labels: Floats, probabilities: Floats) -> Floats:
    """Mean binary cross-entropy of each class, in nats, over its labelled images.

    Args:
        labels: 1, 0, a number between (smoothed) or NaN (not labelled), shape (images, classes).
        probabilities: In [0, 1], same shape.

    Returns:
        Shape (classes,); NaN for a class without a label, or with a NaN probability.
    """
    p = np.clip(probabilities.astype(np.float64), _EPSILON, 1 - _EPSILON)
    loss = -(labels * np.log(p) + (1 - labels) * np.log1p(-p))
    labelled = ~np.isnan(labels)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(labelled, loss, 0.0).sum(axis=0) / labelled.sum(axis=0))


def auroc(labels: Floats, scores: Floats) -> Floats:
    """Area under the ROC curve of each class, by ranks (Mann-Whitney), ties counting half.

    Args:
        labels: 1, 0 or NaN (not labelled), shape (images, classes). Smoothed labels are left out.
        scores: Any monotone score, same shape.

    Returns:
        Shape (classes,); NaN for a class without positives or negatives, or with a NaN score.
    """
    positive, negative = labels == 1, labels == 0
    # Images without the label rank above all others and do not change their ranks.
    ranks = _mid_ranks(np.where(positive | negative, scores, np.inf))
    positives = positive.sum(axis=0)
    negatives = negative.sum(axis=0)
    rank_sum = np.where(positive, ranks, 0.0).sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray((rank_sum - positives * (positives + 1) / 2) / (positives * negatives))


def _mid_ranks(scores: Floats) -> NDArray[np.float64]:
    """Ranks from 1 in each column, as `scipy.stats.rankdata`, whose import takes a second."""
    ranks = np.full(scores.shape, np.nan)
    for column, values in enumerate(scores.T):
        if not np.isnan(values).any():
            _, place, ties = np.unique(values, return_inverse=True, return_counts=True)
            ranks[:, column] = (np.cumsum(ties) - (ties - 1) / 2)[place]
    return ranks


def named(classes: tuple[str, ...], labels: Floats, probabilities: Floats) -> dict[str, float]:
    """Metrics by name, as they are sent to the server and logged.

    Args:
        classes: Names of the columns.
        labels: See `bce`, shape (images, classes).
        probabilities: In [0, 1], same shape.

    Returns:
        "bce" and "auroc", means over the classes for which they are defined, then "bce/<class>" and
        "auroc/<class>" for those classes.
    """
    per_class = {"bce": bce(labels, probabilities), "auroc": auroc(labels, probabilities)}
    values = {
        f"{metric}/{name}": float(value)
        for metric, all_values in per_class.items()
        for name, value in zip(classes, all_values, strict=True)
        if np.isfinite(value)
    }
    return mean_over(values, classes)


def mean_over(values: Mapping[str, float], classes: Collection[str]) -> dict[str, float]:
    """Recompute the means of metrics by name (see `named`) over some of the classes."""
    means = {}
    for metric in ("bce", "auroc"):
        defined = [v for name, v in of_classes(metric, values).items() if name in classes]
        if defined:
            means[metric] = float(np.mean(defined))
    return {**means, **{n: v for n, v in values.items() if n not in ("bce", "auroc")}}


def of_classes(metric: str, values: Mapping[str, float]) -> dict[str, float]:
    """Class -> value of a metric, from metrics by name; see `named`.

    Example:
        >>> of_classes("auroc", {"auroc": 0.75, "auroc/Edema": 0.75, "bce/Edema": 0.5})
        {'Edema': 0.75}
    """
    start = f"{metric}/"
    return {n.removeprefix(start): float(v) for n, v in values.items() if n.startswith(start)}


def counts(classes: tuple[str, ...], labels: Floats) -> dict[str, float]:
    """Numbers of images behind the metrics, as floats.

    Returns:
        "images", then "positives/<class>" and "negatives/<class>", without smoothed labels.
    """
    values = {IMAGES: float(len(labels))}
    for column, name in enumerate(classes):
        values[f"{POSITIVES}/{name}"] = float((labels[:, column] == 1).sum())
        values[f"{NEGATIVES}/{name}"] = float((labels[:, column] == 0).sum())
    return values


def fault(values: object, classes: Collection[str] | None) -> str | None:
    """The first reason why a site's metrics must be refused; None: they are valid.

    Args:
        values: The value received as metrics.
        classes: Classes that the site labels; None (heads stay at their sites): any names.
    """
    if not isinstance(values, Mapping):
        return f"metrics must be numbers by name; got {type(values).__name__}"
    if len(values) > len(REPORTED) * Limits().site_classes:
        return f"metrics must be of {Limits().site_classes} classes at most; got {len(values)}"
    labelled = None if classes is None else set(classes)

    def known(about: str) -> bool:
        return unfit(about) is None if labelled is None else about in labelled

    for name, value in values.items():
        kind, slash, about = name.partition("/") if isinstance(name, str) else ("", "", "")
        largest, by_class = REPORTED.get(kind, (0.0, False))
        if kind not in REPORTED or (slash and not (by_class and known(about))):
            return f"there is no metric {received(name)} that the site could report"
        number = type(value) in (int, float) or isinstance(value, np.floating)
        if not number or not 0 <= _float(value) <= largest or _float(value) == math.inf:
            return f"{name!r} must be a number from 0 to {largest:g}; got {received(value)}"
        if kind in COUNTS and value % 1:
            return f"{name!r} must be a whole number; got {received(value)}"
    return None


def _float(value: Any) -> float:
    """A number as a float; NaN if it is too large for one."""
    try:
        return float(value)
    except OverflowError:
        return math.nan


def numbers(values: Mapping[str, float]) -> dict[str, float]:
    """Valid metrics as plain floats, which every format can write."""
    return {name: float(value) for name, value in values.items()}


def disclosed(
    values: Mapping[str, float], withheld: Collection[str], *, with_counts: bool
) -> dict[str, float]:
    """Metrics that may leave a site: without withheld classes, and without counts by default."""
    kept = {n: value for n, value in values.items() if n.partition("/")[2] not in withheld}
    return kept if with_counts else without_counts(kept)


def without_counts(values: Mapping[str, float]) -> dict[str, float]:
    """Remove counts from metrics, and round the rest so that counts cannot be inferred.

    An exact AUROC is a fraction whose denominator divides 2 P N, where P and N are the numbers of
    positives and negatives. It is rounded so that each rounded value covers at least 10 possible
    ones: to 1 decimal from P N = 100 on, 2 from 1,000, 3 from 10,000; below 100 it is left out. The
    mean is over the remaining AUROCs. All other values have 3 significant digits.

    What still leaks: the power of ten of P N; and a party that chooses which models are evaluated
    can estimate each class's prevalence from its losses, better with every model.

    Args:
        values: Metrics by name, including `counts`; without counts every AUROC keeps 3 decimals.
    """
    auroc = {
        f"auroc/{name}": round(value, decimals)
        for name, value in of_classes("auroc", values).items()
        if (decimals := _decimals(values, name)) > 0
    }
    if auroc:
        auroc["auroc"] = round(float(np.mean(list(auroc.values()))), _MOST_DECIMALS)
    handled = ("auroc", *COUNTS)
    others = {n: float(f"{v:.3g}") for n, v in values.items() if n.partition("/")[0] not in handled}
    return others | auroc


def _decimals(values: Mapping[str, float], name: str) -> int:
    """Decimals that the AUROC of a class may have, from the counts in `values`."""
    pairs = math.prod(values.get(f"{kind}/{name}", math.inf) for kind in (POSITIVES, NEGATIVES))
    return math.floor(math.log10(min(max(pairs, 10), 10 ** (_MOST_DECIMALS + 1)))) - 1


def summary(values: Mapping[str, float]) -> str:
    """The mean metrics, for a log."""
    return ", ".join(f"{name} {values[name]:.4f}" for name in ("bce", "auroc") if name in values)
