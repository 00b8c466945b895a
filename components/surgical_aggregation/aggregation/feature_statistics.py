"""Statistics of a site's features (the head's inputs), and distances of images to them."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surgical_aggregation.aggregation.metrics import Floats
from surgical_aggregation.aggregation.site_result import LARGEST_COUNT, LARGEST_STEP, received

FEWEST_IMAGES = 50
"""Smallest number of images for statistics; fewer would disclose too much about each image."""

WIDER = 4.0
"""Largest width of a site's features, as a multiple of the median site's; see `limits`."""

_SHARE = 0.99  # share of a site's own images within its limit
_LARGEST_LIMIT = 1.001 / (1 - _SHARE)  # the mean distance is 1, so no more exceed it; rounding
_TINY = 1e-6  # added to variances, relative to their mean: a feature may be constant


def statistics_of(features: Floats) -> dict[str, Any] | None:
    """Mean and variance of each feature over a site's images, and the spread of their distances.

    Args:
        features: Inputs of the head, shape (images, features).

    Returns:
        JSON-serialisable: "mean" and "variance", one number per feature; "limit": the 99 % quantile
        of the images' distances (see `distances`); "images": their number. None for fewer than
        `FEWEST_IMAGES` images, for a feature that is not finite, or if `fault` has a reason.
    """
    if len(features) < FEWEST_IMAGES or not np.isfinite(features).all():
        return None
    values = features.astype(np.float64)
    made: dict[str, Any] = {
        "mean": _rounded(values.mean(axis=0)),
        "variance": _rounded(values.var(axis=0)),
    }
    limit = float(np.quantile(distances(values, made), _SHARE))
    made |= {"limit": limit, "images": len(features)}
    return None if fault(made, features.shape[1]) else made


def distances(features: Floats, statistics: Mapping[str, Any]) -> NDArray[np.float64]:
    """Distances of images to a site's images: mean over features of the squared standard score.

        d = mean_j (f_j - mean_j)^2 / variance_j

    About 1 for the site's own images. Features are treated as independent.

    Args:
        features: Shape (images, features).
        statistics: Of a site; see `statistics_of`.

    Returns:
        Shape (images,).

    Source:
        The Mahalanobis distance of Lee et al., NeurIPS 2018, with one class and a diagonal
        covariance, so that a site shares only two numbers per feature.
    """
    variance = np.asarray(statistics["variance"], np.float64)
    spread = variance + _TINY * variance.mean() + np.finfo(np.float64).tiny
    off = features.astype(np.float64) - np.asarray(statistics["mean"], np.float64)
    return np.asarray((off**2 / spread).mean(axis=1))


def limits(sites: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
    """The limit of each site's statistics, lowered for sites whose features are too wide.

    A site's width is its limit times its mean variance; it may be at most `WIDER` times the median
    site's (of an even number: the lower median). So one site with inflated statistics cannot make
    every image look familiar. A site whose statistics are centered elsewhere is believed: images
    like that pass, as those of a site with another kind of images should.

    Example:
        >>> limits({"a": {"limit": 2, "variance": [1]}, "b": {"limit": 2, "variance": [10]}})
        {'a': 2.0, 'b': 0.8}
    """
    widths = {site: s["limit"] * float(np.mean(s["variance"])) for site, s in sites.items()}
    median = sorted(widths.values())[(len(widths) - 1) // 2] if widths else 0.0
    return {
        site: own["limit"] * min(1.0, WIDER * median / (widths[site] or 1.0))
        for site, own in sites.items()
    }


def fault(statistics: object, features: int | None) -> str | None:
    """Why a site's statistics must be refused; None: they are valid.

    Args:
        statistics: The value received.
        features: Number of features of the model's head; None: unknown.
    """
    if not isinstance(statistics, Mapping) or statistics.keys() != {
        "mean", "variance", "limit", "images",
    }:  # fmt: skip
        return "feature statistics must be mean, variance, limit and images"
    mean, variance = statistics["mean"], statistics["variance"]
    if not all(isinstance(part, list) for part in (mean, variance)):
        return "the mean and variance of features must be lists"
    number = features or len(mean)
    if not number == len(mean) == len(variance):
        return (
            f"the mean and variance of features need one number per feature, {number}; got "
            f"{len(mean)} and {len(variance)}"
        )
    for what, values, least, most in (
        ("mean of a feature", mean, -LARGEST_STEP, LARGEST_STEP),
        ("variance of a feature", variance, 0, LARGEST_STEP**2),
        ("limit", [statistics["limit"]], 0, _LARGEST_LIMIT),
        ("number of images", [statistics["images"]], FEWEST_IMAGES, LARGEST_COUNT),
    ):
        for value in values:
            if type(value) not in (int, float) or not least <= value <= most:
                return f"the {what} must be from {least:.6g} to {most:.6g}; got {received(value)}"
    return None if any(variance) else "all features are constant, so there is no distance"


def _rounded(values: Floats) -> list[float]:
    """Round to six significant digits, so that no single image can be inferred."""
    return [float(f"{value:.6g}") for value in values]
