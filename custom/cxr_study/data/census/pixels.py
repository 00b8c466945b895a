"""Grey values and coarse thumbnails of a site's images, as aggregates.

A thumbnail is the image reduced to 8 x 8 pixels, less its mean and divided by its standard
deviation. A site shares means and covariances of thumbnails; those of all sites give a plane, in
which each site counts its images in rectangles of at least `min_count` patients.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from PIL import Image

SIDE = 8
"""Pixels along an edge of a thumbnail."""

BINS = 32
"""Bins of the histogram of grey values, each 8 of 256 wide."""

PER = 10_000
"""Unit of that histogram: pixels per 10,000."""

REACH = 3.0
"""Half the drawn part of each axis, in standard deviations."""

_GRID = 24  # squares along an edge of the plane
_MEASURED = 1024  # images between two reports of progress


@dataclass(frozen=True, eq=False)
class Thumbnails:
    """Thumbnails of a site, shape (n, SIDE * SIDE), and the patient of each; they stay there."""

    values: np.ndarray
    patients: Sequence[str]


@dataclass(frozen=True, eq=False)
class Moments:
    """Mean (SIDE * SIDE,) and covariance (SIDE * SIDE, SIDE * SIDE) of a site's thumbnails."""

    images: int
    mean: np.ndarray
    covariance: np.ndarray


@dataclass(frozen=True, eq=False)
class Axes:
    """The plane in which all sites' thumbnails differ most.

    Attributes:
        middle: Shape (SIDE * SIDE,).
        directions: Orthonormal columns, shape (SIDE * SIDE, 2).
        spread: Standard deviation along each; `explained` is their share of the variance.
    """

    middle: np.ndarray
    directions: np.ndarray
    spread: np.ndarray
    explained: np.ndarray

    def project(self, thumbnails: np.ndarray) -> np.ndarray:
        """Project thumbnails (n, SIDE * SIDE) to the plane, in standard deviations, (n, 2)."""
        return (thumbnails - self.middle) @ self.directions / self.spread

    def ellipse(self, moments: Moments) -> tuple[np.ndarray, np.ndarray]:
        """Mean (2,) and covariance (2, 2) of a site in the plane."""
        scaled = self.directions / self.spread
        return self.project(moments.mean[None])[0], scaled.T @ moments.covariance @ scaled


@dataclass(frozen=True)
class Rectangle:
    """A part of the plane and the number of images in it."""

    left: float
    bottom: float
    width: float
    height: float
    images: int


def measure(
    pixels: np.ndarray, rows: np.ndarray, progress: Callable[[int, int], None] | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Look at every image once: those `rows` of uint8 (m, size, size) pixels.

    Returns:
        Pixels of `PER` in each bin of grey values, mean over the images, rounded, shape (BINS,);
        and the thumbnails, shape (n, SIDE * SIDE).
    """
    counts = np.zeros(256, np.int64)
    thumbnails = np.empty((len(rows), SIDE * SIDE))
    for i, row in enumerate(rows):
        image = np.asarray(pixels[row])
        counts += np.bincount(image.ravel(), minlength=256)
        small = Image.fromarray(image.astype(np.float32)).resize((SIDE, SIDE), Image.Resampling.BOX)
        thumbnails[i] = np.asarray(small).ravel()
        if progress is not None and (i + 1 == len(rows) or (i + 1) % _MEASURED == 0):
            progress(i + 1, len(rows))
    thumbnails -= thumbnails.mean(axis=1, keepdims=True)
    thumbnails /= np.maximum(thumbnails.std(axis=1, keepdims=True), 1.0)
    histogram = counts.reshape(BINS, -1).sum(axis=1)
    return np.rint(PER * histogram / max(1, histogram.sum())).astype(int), thumbnails


def moments(thumbnails: np.ndarray) -> Moments:
    """Mean and covariance of thumbnails (n, SIDE * SIDE), rounded to four decimals."""
    covariance = np.cov(thumbnails, rowvar=False, bias=True)
    return Moments(len(thumbnails), thumbnails.mean(axis=0).round(4), covariance.round(4))


def common_axes(sites: Sequence[Moments]) -> Axes:
    """Principal axes of the thumbnails of one or more sites, every site weighted equally."""
    means = np.array([site.mean for site in sites])
    middle = means.mean(axis=0)
    within = np.mean([site.covariance for site in sites], axis=0)
    between = (means - middle).T @ (means - middle) / len(sites)
    variances, vectors = np.linalg.eigh(within + between)
    directions = vectors[:, [-1, -2]]
    largest = np.abs(directions).argmax(axis=0)
    directions = directions * np.sign(directions[largest, [0, 1]])  # eigenvectors have no sign
    chosen = np.maximum(variances[[-1, -2]], 1e-12)
    return Axes(middle, directions, np.sqrt(chosen), chosen / variances.sum())


def rectangles(places: np.ndarray, patients: Sequence[str], min_count: int) -> list[Rectangle]:
    """Count images in rectangles of the plane, as fine as the smallest count allows.

    The plane, `REACH` standard deviations to either side, is cut along a line of a grid, then every
    part again, as evenly as possible, while no part has fewer than `min_count` patients. So no
    small count is shared, and none follows from the others. Images beyond the plane count at its
    edge. (LeFevre et al., Mondrian Multidimensional K-Anonymity, ICDE 2006.)

    Args:
        places: Shape (n, 2), in standard deviations.
        patients: Patient of each image.
        min_count: Smallest number of patients in a rectangle.

    Returns:
        Rectangles that cover the plane; none where there are fewer patients than that.
    """
    step = 2 * REACH / _GRID
    squares = np.clip(np.floor((places + REACH) / step), 0, _GRID - 1).astype(int)
    names = np.unique(np.asarray(patients, dtype=str), return_inverse=True)[1]

    def cut(inside: np.ndarray, low: np.ndarray, high: np.ndarray) -> list[Rectangle]:
        lines = [(side, at) for side in (0, 1) for at in range(low[side] + 1, high[side])]
        first = {(side, at): squares[inside, side] < at for side, at in lines}
        for side, at in sorted(lines, key=lambda line: abs(2 * first[line].sum() - len(inside))):
            halves = inside[first[side, at]], inside[~first[side, at]]
            if min(len(np.unique(names[half])) for half in halves) >= min_count:
                middle = [np.where(np.arange(2) == side, at, edge) for edge in (high, low)]
                return cut(halves[0], low, middle[0]) + cut(halves[1], middle[1], high)
        corner, size = (low * step - REACH).tolist(), ((high - low) * step).tolist()
        return [Rectangle(corner[0], corner[1], size[0], size[1], len(inside))]

    if len(np.unique(names)) < min_count:
        return []
    return cut(np.arange(len(places)), np.zeros(2, int), np.full(2, _GRID))
