"""Weighted means of arrays, and of dicts of variables whose names may differ."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating]
Variables = Mapping[str, Array]


def mean(arrays: Sequence[Array], weights: Sequence[float]) -> Array:
    """Average arrays of one shape: sum(a_k * x_k) / sum(a_k), with weights a_k > 0.

    The sum is computed in float64 in the given order, so equal orders give equal bits. The result
    has the dtype of the first array; a single array is returned bit for bit.

    Example:
        >>> mean([np.float32([1, 2]), np.float32([3, 6])], [1, 3])
        array([2.5, 5. ], dtype=float32)
    """
    shares = np.asarray(weights, dtype=np.float64) / np.sum(weights, dtype=np.float64)
    # NumPy 1 multiplies a float32 array by a float64 scalar in float32.
    with np.errstate(over="ignore", invalid="ignore"):  # `MergeIntoGlobalModel` checks the result
        total = np.multiply(arrays[0], shares[0], dtype=np.float64)
        for share, array in zip(shares[1:], arrays[1:], strict=True):
            total += np.multiply(array, share, dtype=np.float64)
        return np.asarray(total, dtype=arrays[0].dtype)


def mean_by_name(
    results: Sequence[Variables], weights: Sequence[Mapping[str, float]]
) -> dict[str, Array]:
    """Average each variable over the sites that sent it.

    Args:
        results: One dict of variables per site, in the order in which to sum.
        weights: One dict per site: a weight > 0 for every variable it sent.

    Returns:
        The union of the variables, sorted by name, each in its own dtype.

    Source:
        Kulkarni et al., "From Isolation to Collaboration", ML4H 2024: strategy f (Eq. 1) over all
        sites and strategy g (Eq. 2 and 3) over the sites that label a class are this mean with
        different weights.
    """
    averaged = {}
    for name in sorted({name for variables in results for name in variables}):
        senders = [k for k, variables in enumerate(results) if name in variables]
        averaged[name] = mean(
            [results[k][name] for k in senders], [weights[k][name] for k in senders]
        )
    return averaged


def column_similarity(sites: Sequence[Mapping[str, tuple[Array, Array]]]) -> dict[str, float]:
    """Mean cosine similarity of a class's kernels over all pairs of sites.

    Args:
        sites: For each site, class -> (kernel of shape (features,), bias of shape (1,)).

    Returns:
        Class -> similarity, sorted by class, for classes of two or more sites; no zero kernels.

    Example:
        >>> column_similarity([{"Edema": ([1.0, 0.0], [0.0])}, {"Edema": ([0.0, 2.0], [0.0])}])
        {'Edema': 0.0}
    """
    similarity: dict[str, float] = {}
    for name in sorted({name for columns in sites for name in columns}):
        kernels = np.array([c[name][0] for c in sites if name in c], np.float64)
        lengths = np.linalg.norm(kernels, axis=1, keepdims=True)
        if (count := len(kernels)) > 1 and lengths.all():
            whole = np.sum((kernels / lengths).sum(axis=0) ** 2)  # each pair twice, plus squares
            similarity[name] = float((whole - count) / (count * (count - 1)))
    return similarity
