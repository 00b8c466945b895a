"""The labelled head: the last dense layer, its columns known by class and never by index."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from surgical_aggregation.aggregation.averaging import Array, mean_of_rows


class HeadError(ValueError):
    """A head does not have the shape or the classes that were needed."""


@dataclass(frozen=True)
class LabelledHead:
    """A dense layer whose columns carry the names of their classes.

    Attributes:
        classes: Names of the classes, all different, in column order.
        kernel: Weights, floating, shape (features, classes).
        bias: Biases, floating, shape (classes,).

    Raises:
        HeadError: The shapes do not fit the classes, or a class stands twice.
    """

    classes: tuple[str, ...]
    kernel: Array
    bias: Array

    def __post_init__(self) -> None:
        count = len(self.classes)
        if self.kernel.ndim != 2 or self.kernel.shape[1] != count or self.bias.shape != (count,):
            raise HeadError(
                f"a head of {count} classes needs a kernel (features, {count}) and a bias "
                f"({count},); got {self.kernel.shape} and {self.bias.shape}. "
                "Does the model's last layer have one unit per class of the site?"
            )
        if twice := sorted(name for name, times in Counter(self.classes).items() if times > 1):
            raise HeadError(f"every class needs one column; {twice} stand more than once.")


def columns(head: LabelledHead) -> dict[str, tuple[Array, Array]]:
    """Take a head apart into one (kernel column, bias) pair per class, both real copies.

    Returns:
        Class -> (kernel of shape (features,), bias of shape (1,)).
    """
    return {
        name: (head.kernel[:, index].copy(), head.bias[index : index + 1].copy())
        for index, name in enumerate(head.classes)
    }


def from_columns(held: Mapping[str, tuple[Array, Array]], features: int) -> LabelledHead:
    """Put a head together from its columns, in the order of the mapping.

    Args:
        held: Class -> (kernel of shape (features,), bias of shape (1,)).
        features: Number of features; needed where there are no columns.
    """
    if not held:
        return LabelledHead((), np.zeros((features, 0), np.float32), np.zeros(0, np.float32))
    kernels, biases = zip(*held.values(), strict=True)
    return LabelledHead(tuple(held), np.stack(kernels, axis=1), np.concatenate(biases))


def select(head: LabelledHead, classes: Iterable[str]) -> LabelledHead:
    """Take the columns of the given classes, in the given order, as real copies.

    Raises:
        HeadError: The head has no column for one of the classes.
    """
    classes = tuple(classes)
    places = {name: index for index, name in enumerate(head.classes)}
    unknown = [name for name in classes if name not in places]
    if unknown:
        raise HeadError(
            f"head has no column for {unknown}; it has {list(head.classes)}. "
            "Check the spelling in this site's class list."
        )
    index = [places[name] for name in classes]
    return LabelledHead(classes, head.kernel[:, index], head.bias[index])


def merge(
    heads: Sequence[LabelledHead], weights: Sequence[Mapping[str, float]] | None = None
) -> LabelledHead:
    """Average heads column by column, each class over the heads that hold it; see `merge_columns`.

    Args:
        heads: One or more, all with the same number of features, in the order in which to sum.
        weights: For each head a weight > 0 for every class it holds; equal weights when omitted.

    Returns:
        Head over the union of the classes, sorted by name.
    """
    if weights is None:
        weights = [dict.fromkeys(head.classes, 1.0) for head in heads]
    merged = merge_columns([columns(head) for head in heads], weights)
    return from_columns(merged, heads[0].kernel.shape[0])


def merge_columns(
    held: Sequence[Mapping[str, tuple[Array, Array]]], weights: Sequence[Mapping[str, float]]
) -> dict[str, tuple[Array, Array]]:
    """Average columns, each class over the sites that hold it.

    With K(c) the sites that hold class c and a_kc their weights for it,

        w_c = sum(a_kc * w_kc) / sum(a_kc)        over k in K(c),

    and likewise for the bias. The column of a class that one site holds passes bit for bit.

    Args:
        held: For each site, class -> (kernel of shape (features,), bias of shape (1,)), in the
            order in which to sum.
        weights: For each site a weight > 0 for every class it holds.

    Returns:
        The union of the classes, sorted by name.

    Source:
        Kulkarni et al., "From Isolation to Collaboration", ML4H 2024, Eq. 2 and 3.
    """
    merged = {}
    for holders, names in by_holders(held):
        given = [[weights[k][name] for k in holders] for name in names]
        kernels, biases = (
            mean_of_rows([np.array([held[k][c][part] for c in names]) for k in holders], given)
            for part in (0, 1)
        )
        for row, name in enumerate(names):  # copies: a column that stays keeps no other's memory
            merged[name] = (kernels[row].copy(), biases[row].copy())
    return dict(sorted(merged.items()))


def by_holders(
    held: Sequence[Mapping[str, object]], at_most: int = 32
) -> Iterator[tuple[tuple[int, ...], list[str]]]:
    """Classes with the same holders, to be computed in one go.

    Args:
        held: For each site, what it has of its classes.
        at_most: Classes that come together, so that their arrays stay in the cache. Default 32.

    Yields:
        Indices of the sites that hold them, and names of classes, sorted.
    """
    together = defaultdict(list)
    for name in sorted({name for columns in held for name in columns}):
        together[tuple(k for k, columns in enumerate(held) if name in columns)].append(name)
    for holders, names in together.items():
        for start in range(0, len(names), at_most):
            yield holders, names[start : start + at_most]
