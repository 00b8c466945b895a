"""Columns of a head fitted anew on the features of a frozen body, held to what they were."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from surgical_aggregation.aggregation.averaging import Array
from surgical_aggregation.aggregation.metrics import bce

PENALTIES = (3.0, 1.0, 0.3, 0.1, 0.03, 0.01)
"""Candidates for lambda, from the strongest on."""

_ITERATIONS = 200
_TOLERANCE = 1e-5  # largest entry of the gradient with which a fit is finished


class FeatureSplit(NamedTuple):
    """Inputs of a head, (images, features), and labels, (images, classes); NaN: not labelled."""

    features: Array
    labels: Array


class Refit(NamedTuple):
    """Kernel (features, classes), bias (classes,), and the penalty chosen; None: as they were."""

    kernel: Array
    bias: Array
    penalty: float | None


def best_refit(
    train: FeatureSplit,
    validation: FeatureSplit,
    kernel: Array,
    bias: Array,
    weights: Array | None = None,
) -> Refit:
    """Fit columns with every penalty, and take those with the smallest validation loss.

    The columns as they were are a candidate, too. The loss is the mean over classes of the mean BCE
    of their labelled validation images; without such images nothing is changed.

    Args:
        train: What to fit to.
        validation: What to choose by.
        kernel: Columns as they were, shape (features, classes).
        bias: Likewise, shape (classes,).
        weights: See `refit_columns`.
    """
    best, smallest = Refit(kernel, bias, None), _loss(validation, kernel, bias)
    for penalty in PENALTIES:
        fitted = refit_columns(train, kernel, bias, penalty, weights)
        loss = _loss(validation, *fitted)
        if loss < smallest:
            best, smallest = Refit(*fitted, penalty), loss
    return best


def refit_columns(
    train: FeatureSplit,
    kernel: Array,
    bias: Array,
    penalty: float,
    weights: Array | None = None,
) -> tuple[Array, Array]:
    """Fit every column anew, held to what it was.

    With s_j the standard deviation of feature j over the images, and BCE the mean over those that
    are labelled for class c, its column is the only minimum of

        BCE(w, b) + lambda / 2 * sum_j s_j^2 (w_j - w_cj)^2.

    So the scale of a feature makes no difference, and one that is constant keeps its weight. The
    bias is free. A class without positives or without negatives keeps its column. Computed in
    float64.

    Args:
        train: What to fit to.
        kernel: Columns w_c to start from, shape (features, classes).
        bias: Likewise, shape (classes,).
        penalty: lambda above, > 0.
        weights: Of a negative and of a positive label in the loss, shape (2, classes), as of
            `loss.balanced_weights`; None: all 1.

    Returns:
        Kernel and bias, in their dtypes.

    Source:
        A head fitted at the end, on the aggregated body: FedBABU, Oh et al., arXiv:2106.06042;
        CCVR, Luo et al., arXiv:2106.05001. The penalty is ours.
    """
    from scipy.optimize import minimize

    features = train.features.astype(np.float64)
    received = features @ kernel + bias
    mean, deviation = features.mean(axis=0), features.std(axis=0)
    varies = deviation > 0
    z = (features[:, varies] - mean[varies]) / deviation[varies]
    labelled = ~np.isnan(train.labels)
    labels = np.where(labelled, train.labels, 0.0)
    both = (labels > 0).any(axis=0) & (labelled & (labels < 1)).any(axis=0)
    share = labelled * both / np.maximum(labelled.sum(axis=0), 1)
    if weights is not None:
        share = share * (weights[0] + labels * (weights[1] - weights[0]))
    shape = (z.shape[1] + 1, len(bias))

    def objective(flat: Array) -> tuple[float, Array]:
        moved = flat.reshape(shape)
        slopes, shift = moved[:-1], moved[-1]
        logits = received + z @ slopes + shift
        error = share * (_probability(logits) - labels)
        gradient = np.vstack([z.T @ error + penalty * slopes, error.sum(axis=0)])
        loss = np.sum(share * (np.logaddexp(0.0, logits) - labels * logits))
        return float(loss + penalty / 2 * np.sum(slopes**2)), gradient.ravel()

    # Columns do not depend on each other, so one search finds the minimum of each.
    found = minimize(
        objective,
        np.zeros(shape).ravel(),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": _ITERATIONS, "gtol": _TOLERANCE, "ftol": 0.0},
    )
    moved = found.x.reshape(shape)
    step = np.zeros(kernel.shape)
    step[varies] = moved[:-1] / deviation[varies, None]
    shift = moved[-1] - mean @ step
    return (kernel + step).astype(kernel.dtype), (bias + shift).astype(bias.dtype)


def _loss(split: FeatureSplit, kernel: Array, bias: Array) -> float:
    losses = bce(split.labels, _probability(split.features.astype(np.float64) @ kernel + bias))
    known = losses[~np.isnan(losses)]
    return float(known.mean()) if known.size else 0.0


def _probability(logits: Array) -> Array:
    from scipy.special import expit

    return np.asarray(expit(logits))
