"""Which test pictures a report shows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from cxr_study.evaluation.test_split import TestSplit
from cxr_study.reports.run.render import Example

PER_SITE = 6
MOST_CLASSES = 3  # present in one picture, so that a person can tell what shows what


def choose(
    split: TestSplit, probabilities: pd.DataFrame, union: Sequence[str], count: int = PER_SITE
) -> list[Example]:
    """Pick test pictures that together show many classes, by their labels alone.

    First come pictures of at most three classes, each the one that adds most classes not shown yet;
    the last is one without any, where there is one. Predictions play no part, so the choice
    flatters nobody.

    Args:
        split: The test split.
        probabilities: Of the global model; see `evaluation.predict`.
        union: Classes of the columns of the split's labels.
        count: Pictures to pick, or as many as there are.
    """
    present = split.labels(union) == 1
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
            site=split.site,
            image=np.asarray(split.pixels[split.rows[pick]]),
            truth=[name for name, there in zip(union, present[pick], strict=True) if there],
            predictions=probabilities.iloc[pick].to_dict(),
            held=split.held,
        )
        for pick in [*picks, *normal.tolist()]
    ]
