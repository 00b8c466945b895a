"""Refit the columns of a head on the features of a frozen body, penalized towards their values."""

from typing import NamedTuple

import numpy as np

from surgical_aggregation.aggregation.averaging import Array
from surgical_aggregation.aggregation.metrics import bce

PENALTIES = (3.0, 1.0, 0.3, 0.1, 0.03, 0.01)
"""Candidates for lambda, strongest first."""

_ITERATIONS = 200
_TOLERANCE = 1e-5  # largest entry of the scaled gradient at which a fit has converged


class FeatureSplit(NamedTuple):
    """Inputs of a head (images, features), and labels (images, classes); NaN: not labelled."""

    features: Array
    labels: Array


class Refit(NamedTuple):
    """Kernel (features, classes), bias (classes,), and the penalty; None: columns unchanged."""

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
    """Refit columns with every penalty, and select those with the smallest validation loss.

    The unchanged columns are a candidate, too. The loss is the mean over classes of the mean BCE of
    their labelled validation images; without such images the columns are unchanged.

    Args:
        train: Split to fit to.
        validation: Split to select the penalty by.
        kernel: Present columns, shape (features, classes).
        bias: Present biases, shape (classes,).
        weights: See `refit_columns`. Default None: all 1.
    """
    best, smallest = Refit(kernel, bias, None), _loss(validation, kernel, bias)
    for penalty in PENALTIES:
        fitted = refit_columns(train, kernel, bias, penalty, weights)
        loss = _loss(validation, *fitted)
        if loss < smallest:
            best, smallest = Refit(*fitted, penalty), loss
    return best


def refit_columns(
    train: FeatureSplit, kernel: Array, bias: Array, penalty: float, weights: Array | None = None
) -> tuple[Array, Array]:
    """Refit every column, with a penalty on its distance from the present one.

    With s_j the standard deviation of feature j over the images, and BCE the mean over the images
    that are labelled for class c, its column is the unique minimum of

        BCE(w, b) + lambda / 2 * sum_j s_j^2 (w_j - w_cj)^2.

    So the result does not depend on the scale of features, and a constant feature keeps its weight.
    The bias is not penalized. A class without positives or without negatives keeps its column.
    Computed in float64.

    Args:
        train: Split to fit to.
        kernel: Present columns w_c, shape (features, classes).
        bias: Present biases, shape (classes,).
        penalty: lambda above, > 0.
        weights: Weights of a negative and of a positive label in the loss, shape (2, classes), as
            from `loss.balanced_weights`. Default None: all 1.

    Returns:
        Kernel and bias, in their dtypes.

    Source:
        A head fitted at the end, on the aggregated body: FedBABU, Oh et al., arXiv:2106.06042;
        CCVR, Luo et al., arXiv:2106.05001. The penalty is ours.
    """
    import scipy.linalg  # noqa: F401  # loaded before the limit, so that it applies to its threads
    from threadpoolctl import threadpool_limits

    features = train.features.astype(np.float64)
    mean, deviation = features.mean(axis=0), features.std(axis=0)
    varies = deviation > 0
    z = (features[:, varies] - mean[varies]) / deviation[varies]
    step, shift = np.zeros(kernel.shape), np.zeros(bias.shape)
    with threadpool_limits(1):  # a step of L-BFGS is too short for threads: 20 times slower
        spread, axes = np.linalg.eigh(z.T @ z / len(z))
        z, received = z @ axes, features @ kernel + bias
        for c, labels in enumerate(train.labels.T):
            known = ~np.isnan(labels)
            if not (labels > 0).any() or not (labels[known] < 1).any():
                continue
            own = np.ones(2) if weights is None else weights[:, c]
            slopes, shift[c] = _moved(
                z[known], np.maximum(spread, 0.0), labels[known], received[known, c], penalty, own
            )
            step[varies, c] = axes @ slopes / deviation[varies]
    return (kernel + step).astype(kernel.dtype), (bias + shift - mean @ step).astype(bias.dtype)


def _moved(
    z: Array, spread: Array, labels: Array, received: Array, penalty: float, weights: Array
) -> tuple[Array, float]:
    """Change of a class's weights along the features' principal axes, and of its bias.

    Scaled by the loss's curvature along these axes, the loss is nearly isotropic, so that L-BFGS
    converges in a few steps.
    """
    from scipy.optimize import minimize

    share = (weights[0] + labels * (weights[1] - weights[0])) / len(labels)
    sure = _probability(received)
    curvature = max(float(np.sum(share * sure * (1 - sure))), np.finfo(float).eps)
    length = 1 / np.sqrt(np.append(curvature * spread + penalty, curvature))

    def objective(flat: Array) -> tuple[float, Array]:
        moved = length * flat
        logits = received + z @ moved[:-1] + moved[-1]
        error = share * (_probability(logits) - labels)
        gradient = np.append(z.T @ error + penalty * moved[:-1], error.sum())
        loss = np.sum(share * (np.logaddexp(0.0, logits) - labels * logits))
        return float(loss + penalty / 2 * np.sum(moved[:-1] ** 2)), length * gradient

    found = minimize(
        objective,
        np.zeros(len(length)),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": _ITERATIONS, "gtol": _TOLERANCE, "ftol": 0.0},
    )
    moved = length * found.x
    return moved[:-1], float(moved[-1])


def _loss(split: FeatureSplit, kernel: Array, bias: Array) -> float:
    losses = bce(split.labels, _probability(split.features.astype(np.float64) @ kernel + bias))
    labelled = losses[~np.isnan(split.labels).all(axis=0)]
    return float(labelled.mean()) if labelled.size else 0.0


def _probability(logits: Array) -> Array:
    from scipy.special import expit

    return np.asarray(expit(logits))
