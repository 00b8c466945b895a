"""How alike the columns are that sites have trained for one class: whether they drift apart."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from surgical_aggregation.averaging import Array

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
    kernels = defaultdict(list)
    for columns in held:
        for name, (kernel, _) in columns.items():
            kernels[name].append(np.asarray(kernel, np.float64))
    similarity = {}
    for name, several in sorted(kernels.items()):
        lengths = np.linalg.norm(several, axis=1, keepdims=True)
        if len(several) < 2 or not lengths.all():
            continue
        directions = np.stack(several) / lengths
        pairs = np.triu_indices(len(several), k=1)
        similarity[name] = float((directions @ directions.T)[pairs].mean())
    return similarity
