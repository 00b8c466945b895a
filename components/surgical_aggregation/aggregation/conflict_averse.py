"""Weights of sites with which no site's update of the body is worked against more than need be.

With g_k the update of site k, g_0 their mean, and g_w = sum_k w_k g_k,

    w = argmin over the simplex of  g_w . g_0 + c |g_0| |g_w|,

and the step is g_0 + (c |g_0| / |g_w|) g_w: of all steps within c |g_0| of the mean, the one that
does most for the site for which it does least. Here it is divided by the sum of its weights, so
that the new body stays between those of the sites, and the factor before g_w is at most 1: else a
site that hardly moves would have all the weight, and hold the others.

Source:
    CAGrad: Liu et al., NeurIPS 2021, arXiv:2110.14048, Eq. 5 and Algorithm 1; between the sites of
    a federation with different tasks FedHCA2, Lu et al., CVPR 2024. Division and limit are ours.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from surgical_aggregation.aggregation.averaging import Array, Variables

RADIUS = 0.5
"""c above."""


BLOCK = 2**20
"""Numbers of a variable that are looked at together, so that memory does not grow with it."""


def products(bodies: Sequence[Variables], start: Variables) -> Array:
    """Dot products of the updates that bodies are from a start, in float64.

    Args:
        bodies: Of each site; each has the variables of `start`.
        start: By name.

    Returns:
        Shape (sites, sites).
    """
    gram = np.zeros((len(bodies), len(bodies)))
    for name in sorted(start):
        before = start[name].ravel()
        after = [body[name].ravel() for body in bodies]
        for first in range(0, before.size, BLOCK):
            part = slice(first, first + BLOCK)
            rows = np.stack([(value[part] - before[part]).astype(np.float64) for value in after])
            gram += rows @ rows.T
    return gram


def weights(gram: Array) -> list[float]:
    """Weight of each site by the dot products of their updates; the weights sum to their number.

    Example:
        >>> import numpy as np
        >>> [round(w, 2) for w in weights(np.array([[1.0, 0.0], [0.0, 1.0]]))]
        [1.0, 1.0]
    """
    from scipy.optimize import minimize  # only this weighting needs SciPy at the server

    count = len(gram)
    even = np.full(count, 1 / count)
    length = np.sqrt(max(gram.mean(), 0.0))
    if not length:
        return [1.0] * count
    scaled = gram / length**2  # so |g_0| = 1

    def objective(w: Array) -> tuple[float, Array]:
        against = scaled @ w
        norm = np.sqrt(max(w @ against, np.finfo(float).tiny))
        return float(scaled.mean(axis=0) @ w + RADIUS * norm), (
            scaled.mean(axis=0) + RADIUS * against / norm
        )

    chosen = minimize(
        objective,
        even,
        jac=True,
        method="SLSQP",
        bounds=[(0, 1)] * count,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1, "jac": np.ones_like},
        options={"ftol": 1e-12, "maxiter": 500},
    ).x
    lift = RADIUS / np.sqrt(max(chosen @ scaled @ chosen, RADIUS**2))
    total = even + lift * chosen
    return [float(weight) for weight in count * total / total.sum()]
