"""The figures of a comparison: mean AUROCs over kinds of classes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean


@dataclass(frozen=True)
class Score:
    """AUROC of one class on one site's test split.

    Attributes:
        site: Whose test split.
        class_name: The class.
        shared: Whether every site labels the class.
        held: Whether this site labels it.
        predicted: Whether the model that is measured here has the class.
        auroc: None where the model lacks the class, or the split has no positives or no negatives.
    """

    site: str
    class_name: str
    shared: bool
    held: bool
    predicted: bool
    auroc: float | None


MEASURES: Mapping[str, Callable[[Score], bool]] = {
    "shared classes": lambda score: score.shared,
    "unique classes, own site": lambda score: score.held and not score.shared,
    "unique classes, other site": lambda score: not score.held,
    "all classes": lambda score: True,
}
"""Name -> whether a score belongs to it. All are over the test splits of all sites."""


def mean_auroc(scores: Sequence[Score], measure: str) -> float | None:
    """Mean AUROC over the classes and sites of a measure.

    Args:
        scores: Of one model per site: every site with every class of the union.
        measure: A key of `MEASURES`.

    Returns:
        None, "not defined", where a site's model lacks one of the classes, or no split has
        positives and negatives of any.
    """
    members = [score for score in scores if MEASURES[measure](score)]
    if not all(score.predicted for score in members):
        return None
    defined = [score.auroc for score in members if score.auroc is not None]
    return fmean(defined) if defined else None
