"""Images with their labels, as rows of a store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cxr_study.data.images.image_rows import ImageRows


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
    """Put images of several stores together, without a copy of any store.

    Args:
        parts: One or more, all of one side and with the same classes.
    """
    pixels = ImageRows([part.pixels for part in parts])
    rows = [part.rows + start for part, start in zip(parts, pixels.starts, strict=True)]
    return LabelledImages(
        pixels, np.concatenate(rows), np.concatenate([part.labels for part in parts])
    )
