"""Which of a run's models is the best, where not every site measured every one of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True)
class Measured:
    """A model, and what sites measured of it.

    Attributes:
        round: Its round.
        columns: Classes that it has a column for.
        losses: Site -> loss, of every site that measured it.
        classes: Site -> the classes that it measured the loss over, sorted; of the same sites.
    """

    round: int
    columns: frozenset[str]
    losses: Mapping[str, float]
    classes: Mapping[str, Sequence[str]]

    def mean(self, sites: Iterable[str]) -> float:
        """Mean loss over some of the sites that measured it."""
        of = sorted(sites)
        return sum(self.losses[site] for site in of) / len(of)


class Verdict(NamedTuple):
    """What became of a model.

    Attributes:
        best: Whether it is the best one now.
        compared: Whether it was compared with the best one before it.
        why: For a log: over which sites it was compared, or why it was not.
    """

    best: bool
    compared: bool
    why: str


class ModelSelection:
    """The best model so far: the one with the smallest mean loss over sites.

    The run's sites are all that measured one of its models so far, each with its newest classes. A
    model can be the best when it has a column for every class of every site of the run, and at
    least `min_share` of the sites measured it. It is compared with the best one over the sites that
    measured both, of the same classes; these too must be at least `min_share`. It is better when
    its mean loss over these sites is smaller.

    A site that comes in, or comes back, has a say from the next best model on. When a class comes
    in that the best model has no column for, or so many sites that it was measured by too few, the
    next model that can be the best is.

    Args:
        min_share: See above; above 0, at most 1. Default 0.5.

    Attributes:
        best: The best model; None: there is none yet.
        sites: The run's sites with their classes.

    Raises:
        ValueError: `min_share` is out of range.
    """

    def __init__(self, min_share: float = 0.5):
        if not 0 < min_share <= 1:
            raise ValueError(f"min_share must be above 0 and at most 1; got {min_share!r}.")
        self.min_share = min_share
        self.best: Measured | None = None
        self.sites: dict[str, Sequence[str]] = {}

    def consider(self, model: Measured) -> Verdict:
        """Make a model the best one, if it is."""
        self.sites |= model.classes
        if why := self.objection(model):
            return Verdict(False, False, why)
        if self.best is None or (lost := self.objection(self.best)):
            why = (
                "there was none before"
                if self.best is None
                else f"that of round {self.best.round} cannot be any more: {lost}"
            )
            self.best = model
            return Verdict(True, False, why)
        common = self._comparable(self.best) & self._comparable(model)
        if self._too_few(common):
            return Verdict(False, False, self._few(common, "both it and the best one"))
        loss, least = model.mean(common), self.best.mean(common)
        why = (
            f"{loss:.4f} against {least:.4f} of round {self.best.round}, over the "
            f"{len(common)} sites that measured both"
        )
        better = loss < least
        if better:
            self.best = model
        return Verdict(better, True, why)

    def objection(self, model: Measured) -> str | None:
        """Why a model cannot be the best; None when it can."""
        lacking = [s for s, classes in self.sites.items() if not model.columns.issuperset(classes)]
        if lacking:
            return f"it has no columns for all classes of {sorted(lacking)}"
        measured = self._comparable(model)
        return self._few(measured, "it") if self._too_few(measured) else None

    def _comparable(self, model: Measured) -> set[str]:
        """Sites that measured a model over the classes that they have now."""
        present = model.losses.keys() & self.sites.keys()
        return {site for site in present if model.classes[site] == self.sites[site]}

    def _too_few(self, sites: set[str]) -> bool:
        return not sites or len(sites) / len(self.sites) < self.min_share

    def _few(self, sites: set[str], what: str) -> str:
        return (
            f"only {len(sites)} of {len(self.sites)} sites measured {what} with their present "
            f"classes, and {self.min_share:.0%} must"
        )
