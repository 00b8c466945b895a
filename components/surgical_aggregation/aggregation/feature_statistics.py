"""Where a site's images lie among the features that the head weighs, and how far others are."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surgical_aggregation.aggregation.metrics import Floats

FEWEST_IMAGES = 50
"""Of fewer images a site makes no statistics: they would say too much of each."""

MOST_FEATURES = 65536

_SHARE = 0.99  # of a site's own images that are within its limit
_TINY = 1e-6  # of the mean variance; a feature that never varies has none


def statistics_of(features: Floats) -> dict[str, Any] | None:
    """Mean and variance of each feature over a site's images, and how far its own images are.

    Args:
        features: What the head weighs, shape (images, features).

    Returns:
        JSON-serialisable: "mean" and "variance", one number per feature; "limit": the distance
        (see `distances`) that 99 % of the images do not exceed; "images": how many there are. None
        for fewer than `FEWEST_IMAGES`, or where a feature is not finite.
    """
    if len(features) < FEWEST_IMAGES or not np.isfinite(features).all():
        return None
    values = features.astype(np.float64)
    made: dict[str, Any] = {
        "mean": _rounded(values.mean(axis=0)),
        "variance": _rounded(values.var(axis=0)),
    }
    limit = float(np.quantile(distances(values, made), _SHARE))
    return {**made, "limit": limit, "images": len(features)}


def distances(features: Floats, statistics: Mapping[str, Any]) -> NDArray[np.float64]:
    """How far images are from a site's: mean over features of the squared standard score.

        d = mean_j (f_j - mean_j)^2 / variance_j

    About 1 for the site's own images. Features are taken as independent.

    Args:
        features: Shape (images, features).
        statistics: Of a site; see `statistics_of`.

    Returns:
        Shape (images,).

    Source:
        The Mahalanobis distance of Lee et al., NeurIPS 2018, of one class and with a diagonal
        covariance, which a site can share without more than two numbers per feature.
    """
    variance = np.asarray(statistics["variance"], np.float64)
    spread = variance + _TINY * variance.mean() + np.finfo(np.float64).tiny
    off = features.astype(np.float64) - np.asarray(statistics["mean"], np.float64)
    return np.asarray((off**2 / spread).mean(axis=1))


def fault(statistics: object) -> str | None:
    """Why a site's statistics must be refused; None: they may be kept."""
    if not isinstance(statistics, Mapping) or statistics.keys() != {
        "mean", "variance", "limit", "images",
    }:  # fmt: skip
        return "feature statistics must be mean, variance, limit and images"
    mean, variance = statistics["mean"], statistics["variance"]
    if not all(isinstance(part, list) for part in (mean, variance)):
        return "the mean and variance of features must be lists"
    if not 0 < len(mean) == len(variance) <= MOST_FEATURES:
        return (
            f"the mean and variance of features must be as many, at most {MOST_FEATURES}; got "
            f"{len(mean)} and {len(variance)}"
        )
    numbers = [*mean, *variance, statistics["limit"], statistics["images"]]
    if not all(type(n) in (int, float) and math.isfinite(n) for n in numbers):
        return "feature statistics must be finite numbers"
    if min(variance) < 0 or statistics["limit"] < 0 or statistics["images"] < FEWEST_IMAGES:
        return (
            "feature statistics need variances and a limit of 0 or more, over at least "
            f"{FEWEST_IMAGES} images"
        )
    return None


def _rounded(values: Floats) -> list[float]:
    """Six significant digits, which no image can be told from."""
    return [float(f"{value:.6g}") for value in values]
