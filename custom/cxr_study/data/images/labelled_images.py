"""Images with their labels, as rows of one store or of several end to end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np


class ImageRows:
    """Arrays of images end to end, indexed like one array.

    Args:
        arrays: uint8 (n, side, side), one or more, of one side; may be memory-mapped.

    Raises:
        ValueError: The images differ in side.
    """

    def __init__(self, arrays: Sequence[np.ndarray | ImageRows]):
        sides = sorted({array.shape[1:] for array in arrays})
        if len(sides) != 1:
            raise ValueError(f"images of one side are needed; got {sides}.")
        self.arrays = tuple(arrays)

    @cached_property
    def starts(self) -> np.ndarray:
        """Row of the first image of each array."""
        return np.cumsum([0, *(len(array) for array in self.arrays[:-1])])

    @property
    def dtype(self) -> np.dtype:
        """Of the pixels."""
        return self.arrays[0].dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of all images as one array."""
        return (len(self), *self.arrays[0].shape[1:])

    def __len__(self) -> int:
        return sum(len(array) for array in self.arrays)

    def __getitem__(self, rows: np.ndarray) -> np.ndarray:
        """Copies of some rows, in that order; shape (rows, side, side)."""
        rows = np.asarray(rows)
        whose = np.searchsorted(self.starts, rows, side="right") - 1
        images = np.empty((len(rows), *self.shape[1:]), self.dtype)
        for index, (array, start) in enumerate(zip(self.arrays, self.starts, strict=True)):
            chosen = whose == index
            images[chosen] = array[rows[chosen] - start]
        return images


@dataclass(frozen=True, eq=False)
class LabelledImages:
    """Some of a store's images, with labels.

    Attributes:
        pixels: uint8 (m, side, side), memory-mapped: the store.
        rows: Row of `pixels` of each image, shape (n,), int64.
        labels: float32 (n, classes); NaN where not labelled.
    """

    pixels: np.ndarray | ImageRows
    rows: np.ndarray
    labels: np.ndarray


def pool(parts: Sequence[LabelledImages]) -> LabelledImages:
    """Concatenate images of one side and with the same classes, without copying a store."""
    pixels = ImageRows([part.pixels for part in parts])
    rows = [part.rows + start for part, start in zip(parts, pixels.starts, strict=True)]
    return LabelledImages(
        pixels, np.concatenate(rows), np.concatenate([part.labels for part in parts])
    )
