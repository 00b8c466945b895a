"""Images with what is known of them, as rows of one store or of several end to end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd


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
class Images:
    """Decoded images of a site, with what is known of each.

    Attributes:
        table: A row per image, with a RangeIndex: a label table, or labels alone.
        pixels: uint8 (m, side, side), memory-mapped: the store, or several end to end.
        rows: Row of `pixels` of each image, shape (n,), int64.
        site: Whose they are; "": several sites'.
        labelled: Classes that the site labels itself; those of other columns are the truth's.
    """

    table: pd.DataFrame
    pixels: np.ndarray | ImageRows
    rows: np.ndarray
    site: str = ""
    labelled: frozenset[str] = frozenset()

    def of(self, split: str) -> Images:
        """Those of a split."""
        chosen = np.flatnonzero(self.table["split"] == split)
        table = self.table.iloc[chosen].reset_index(drop=True)
        return replace(self, table=table, rows=self.rows[chosen])

    def labels(self, classes: Sequence[str]) -> np.ndarray:
        """Labels of some classes, float64 (n, classes); NaN where nobody knows."""
        return self.table.reindex(columns=list(classes)).to_numpy(float)


def pool(parts: Sequence[Images]) -> Images:
    """Concatenate images of one side and with the same columns, without copying a store."""
    pixels = ImageRows([part.pixels for part in parts])
    rows = [part.rows + start for part, start in zip(parts, pixels.starts, strict=True)]
    table = pd.concat([part.table for part in parts], ignore_index=True)
    return Images(table, pixels, np.concatenate(rows))
