"""Weighted means of arrays, and of variable dicts that do not all hold the same variables."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.floating]
Variables = Mapping[str, Array]


def mean(arrays: Sequence[Array], weights: Sequence[float]) -> Array:
    """Average arrays of one shape.

    With weights a_k the result is sum(a_k * x_k) / sum(a_k), summed in float64 and in the order
    given, so that the same order gives the same bits. A lone array's share is exactly 1.0: it comes
    back bit for bit.

    Args:
        arrays: One or more floating arrays of one shape.
        weights: One weight > 0 per array.

    Returns:
        The mean, in the dtype of the first array.

    Example:
        >>> mean([np.float32([1, 2]), np.float32([3, 6])], [1, 3])
        array([2.5, 5. ], dtype=float32)
    """
    given = np.asarray(weights, dtype=np.float64)
    return _sum(arrays, given / np.sum(given))


def mean_of_rows(arrays: Sequence[Array], weights: ArrayLike) -> Array:
    """Average matrices, each row with weights of its own: bit for bit what `mean` gives row by row.

    Args:
        arrays: One or more floating arrays of one shape (rows, columns).
        weights: Weights > 0, shape (rows, arrays).

    Returns:
        The mean, in the dtype of the first array.
    """
    given = np.array(weights, dtype=np.float64, order="C")  # rows are summed as `mean` sums one
    shares = given / np.sum(given, axis=1, keepdims=True)
    return _sum(arrays, shares.T[:, :, np.newaxis])


def _sum(arrays: Sequence[Array], shares: NDArray[np.float64]) -> Array:
    # NumPy 1 would multiply a float32 array in float32, whatever the scalar is.
    with np.errstate(over="ignore", invalid="ignore"):  # `MergeIntoGlobalModel` looks at the result
        total = np.multiply(arrays[0], shares[0], dtype=np.float64)
        for share, array in zip(shares[1:], arrays[1:], strict=True):
            total = total + np.multiply(array, share, dtype=np.float64)
        return np.asarray(total, dtype=arrays[0].dtype)


def mean_by_name(
    contributions: Sequence[Variables], weights: Sequence[Mapping[str, float]]
) -> dict[str, Array]:
    """Average variable dicts name by name, each variable over the dicts that hold it.

    The denominator belongs to the variable, not to the round: a variable that one of ten
    contributions holds is that contribution's variable, not a tenth of it.

    Args:
        contributions: One dict per site, in the order in which to sum.
        weights: For each contribution a weight > 0 for every variable it holds.

    Returns:
        The union of the variables, sorted by name, each with its mean and its own dtype.

    Source:
        Kulkarni et al., "From Isolation to Collaboration", ML4H 2024: strategy f (Eq. 1) over all
        sites and strategy g (Eq. 2) over a class's holders are this mean with different weights.
    """
    names = sorted({name for variables in contributions for name in variables})
    held = {name: [k for k, c in enumerate(contributions) if name in c] for name in names}
    return {
        name: mean([contributions[k][name] for k in holders], [weights[k][name] for k in holders])
        for name, holders in held.items()
    }
