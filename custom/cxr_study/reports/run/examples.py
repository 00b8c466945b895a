"""Test pictures for a run report, with what the global model says of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import numpy as np

from cxr_study.evaluation.predictions import Predictions

PER_SITE = 6
MOST_CLASSES = 3  # present in one picture, so that a person can tell what shows what
TOP_PREDICTIONS = 5
"""Predictions shown per example, besides the classes that are present."""


@dataclass(frozen=True, eq=False)
class Example:
    """A test picture, with its labels and the global model's predictions.

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
        """The most probable classes, then those present, the model's before all others."""
        ranked = sorted(self.predictions, key=lambda name: (-self.predictions[name], name))
        top, rest = ranked[:TOP_PREDICTIONS], ranked[TOP_PREDICTIONS:]
        unknown = [name for name in self.truth if name not in self.predictions]
        return [*top, *(name for name in rest if name in self.truth), *unknown]


def choose(predictions: Predictions, union: Sequence[str], count: int = PER_SITE) -> list[Example]:
    """Pick test pictures that together show many classes, by their labels alone.

    First come pictures of at most three classes, each the one that adds most classes not shown yet;
    the last has none, if there is such a one. Predictions, which are the global model's, play no
    part: the choice flatters nobody.
    """
    images = predictions.images
    present = images.labels(union) == 1
    number = present.sum(axis=1)
    clear = np.flatnonzero((number >= 1) & (number <= MOST_CLASSES))
    normal = np.flatnonzero(number == 0)[:1]
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
