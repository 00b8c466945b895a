"""Weighted means of arrays, and of variable dicts that do not all hold the same variables."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

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
    shares = np.asarray(weights, dtype=np.float64) / np.sum(weights, dtype=np.float64)
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
        sites and strategy g (Eq. 2 and 3) over the sites that label a class are this mean with
        different weights.
    """
    names = sorted({name for variables in contributions for name in variables})
    held = {name: [k for k, c in enumerate(contributions) if name in c] for name in names}
    return {
        name: mean([contributions[k][name] for k in holders], [weights[k][name] for k in holders])
        for name, holders in held.items()
    }
