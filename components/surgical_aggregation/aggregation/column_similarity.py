"""Whether the columns that sites train for one class drift apart."""

from collections.abc import Mapping, Sequence

import numpy as np

from surgical_aggregation.aggregation.averaging import Array


def column_similarity(sites: Sequence[Mapping[str, tuple[Array, Array]]]) -> dict[str, float]:
    """Mean cosine similarity of the kernels of a class, over pairs of sites.

    Args:
        sites: For each site, class -> (kernel of shape (features,), bias of shape (1,)).

    Returns:
        Class, sorted -> similarity from -1 to 1, for classes of two or more sites whose kernels
        are not all zeros.

    Example:
        >>> column_similarity([{"Edema": ([1.0, 0.0], [0.0])}, {"Edema": ([0.0, 2.0], [0.0])}])
        {'Edema': 0.0}
    """
    similarity: dict[str, float] = {}
    for name in sorted({name for columns in sites for name in columns}):
        kernels = np.array([c[name][0] for c in sites if name in c], np.float64)
        lengths = np.linalg.norm(kernels, axis=1, keepdims=True)
        if (count := len(kernels)) > 1 and lengths.all():
            whole = np.sum((kernels / lengths).sum(axis=0) ** 2)  # every pair twice, and each alone
            similarity[name] = float((whole - count) / (count * (count - 1)))
    return similarity
