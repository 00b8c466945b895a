"""Test images for a run report, with the global model's probabilities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import numpy as np

from cxr_study.evaluation.predictions import Predictions

PER_SITE = 6
"""Images of each site's test split."""

MOST_CLASSES = 3
"""Classes present in one image, at most, so that a person can see which shows what."""

TOP_PREDICTIONS = 5
"""Predictions shown per example, besides the classes that are present."""


@dataclass(frozen=True, eq=False)
class Example:
    """A test image, with its labels and the global model's predictions.

    Attributes:
        site: Whose test split it is from.
        image: Grey values, shape (s, s), dtype uint8.
        truth: Classes labelled present.
        predictions: Class -> probability in [0, 1].
        labelled: Classes that the site labels itself.
    """

    site: str
    image: np.ndarray
    truth: Sequence[str]
    predictions: Mapping[str, float]
    labelled: AbstractSet[str]

    def shown(self) -> list[str]:
        """The classes that a page lists for the image.

        Returns:
            The `TOP_PREDICTIONS` most probable ones, of equal ones the first by name; then those
            that are present and less probable; then those present that the model does not have.
        """
        ranked = sorted(self.predictions, key=lambda name: (-self.predictions[name], name))
        top, rest = ranked[:TOP_PREDICTIONS], ranked[TOP_PREDICTIONS:]
        unknown = [name for name in self.truth if name not in self.predictions]
        return [*top, *(name for name in rest if name in self.truth), *unknown]


def choose(predictions: Predictions, union: Sequence[str], count: int = PER_SITE) -> list[Example]:
    """Choose test images that together show many classes, by their labels alone.

    First come images of at most `MOST_CLASSES` classes, each the one that adds most classes not
    shown yet; the last has no class, if there is such an image with a negative label of the site.
    Predictions do not influence the choice, so it favours no model.

    Args:
        predictions: Of the global model on a site's test split, with its labels.
        union: Classes of the model.
        count: Of images, at most.
    """
    images = predictions.images
    labels, own = images.labels(union), [name in images.labelled for name in union]
    present = labels == 1
    number = present.sum(axis=1)
    clear = np.flatnonzero((number >= 1) & (number <= MOST_CLASSES))
    normal = np.flatnonzero((number == 0) & (labels[:, own] == 0).any(axis=1))[:1]
    picks: list[int] = []
    shown = np.zeros(len(union), bool)
    while len(picks) < count - len(normal) and len(picks) < len(clear):
        left = np.setdiff1d(clear, picks)
        picks.append(int(left[np.argmax((present[left] & ~shown).sum(axis=1))]))
        shown |= present[picks[-1]]
    return [
        Example(
            site=images.site,
            image=np.asarray(images.pixels[images.rows[[pick]]][0]),
            truth=[name for name, there in zip(union, present[pick], strict=True) if there],
            predictions=predictions.probabilities.iloc[pick].to_dict(),
            labelled=images.labelled,
        )
        for pick in [*picks, *normal.tolist()]
    ]
