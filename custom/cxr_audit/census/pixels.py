"""Grey values of a site's images, as one histogram."""

from collections.abc import Callable

import numpy as np

BINS = 32
"""Bins of the histogram of grey values, each 8 of 256 wide."""

PER = 10_000
"""Unit of that histogram: pixels per 10,000."""

_MEASURED = 1024  # images between two reports of progress


def measure(
    pixels: np.ndarray, rows: np.ndarray, progress: Callable[[int, int], None] | None = None
) -> np.ndarray:
    """Look at every image once: those `rows` of uint8 (m, size, size) pixels.

    Returns:
        Pixels of `PER` in each bin of grey values, mean over the images, rounded, shape (BINS,).
    """
    counts = np.zeros(256, np.int64)
    for i, row in enumerate(rows):
        counts += np.bincount(np.ravel(pixels[row]), minlength=256)
        if progress is not None and (i + 1 == len(rows) or (i + 1) % _MEASURED == 0):
            progress(i + 1, len(rows))
    histogram = counts.reshape(BINS, -1).sum(axis=1)
    return np.rint(PER * histogram / max(1, histogram.sum())).astype(int)
