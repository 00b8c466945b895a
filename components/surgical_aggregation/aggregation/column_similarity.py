"""How alike the columns are that sites have trained for one class: whether they drift apart."""

from collections.abc import Mapping, Sequence

import numpy as np

from surgical_aggregation.aggregation.averaging import Array
from surgical_aggregation.aggregation.head import by_holders

COLUMN_SIMILARITY = "surgical.column_similarity"
"""Context property of a round: what `column_similarity` says of the results in it."""


def column_similarity(held: Sequence[Mapping[str, tuple[Array, Array]]]) -> dict[str, float]:
    """Mean cosine similarity of the weights that pairs of sites have for a class.

    1: all point the same way. Biases are left out.

    Args:
        held: For each site, class -> (kernel of shape (features,), bias of shape (1,)).

    Returns:
        Class, sorted -> similarity from -1 to 1. Only classes that two or more sites hold; not one
        that a site has only zeros for.

    Example:
        >>> column_similarity([{"Edema": ([1.0, 0.0], [0.0])}, {"Edema": ([0.0, 2.0], [0.0])}])
        {'Edema': 0.0}
    """
    similarity: dict[str, np.float64] = {}
    for holders, names in by_holders(held):
        if (count := len(holders)) < 2:
            continue
        kernels = np.array([[held[k][name][0] for k in holders] for name in names], np.float64)
        products = kernels @ kernels.transpose(0, 2, 1)
        lengths = np.sqrt(np.diagonal(products, axis1=1, axis2=2))
        with np.errstate(invalid="ignore"):  # a column of zeros points nowhere: NaN
            cosines = products / (lengths[:, :, np.newaxis] * lengths[:, np.newaxis, :])
        pairs = cosines.sum(axis=(1, 2)) - count  # each twice; the diagonal is 1
        similarity |= dict(zip(names, pairs / (count * (count - 1)), strict=True))
    return {c: float(value) for c, value in sorted(similarity.items()) if not np.isnan(value)}
