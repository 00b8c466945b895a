"""Which of a run's models is the best, when not every site measured every one of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

ALONE = 0.1
"""Share of the others' mean loss that one site's difference may always make; see below."""


@dataclass(frozen=True)
class Measured:
    """A model and its losses.

    Attributes:
        round: Its round.
        columns: Classes that it has a column for.
        losses: Site -> loss, of every site that measured it.
        classes: Site -> the classes of its loss, sorted; for the same sites.
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
    """Whether a model is the best now, whether it was compared with the last one, and why."""

    best: bool
    compared: bool
    why: str


class ModelComparison:
    """The best model so far: the one with the smallest mean loss over sites.

    The run's sites are all that measured one of its models, each with its newest classes. A model
    can be the best when it has a column for every class of every site, and at least `min_share` of
    the sites measured it. It is compared with the best one over the sites that measured both for
    the same classes, again at least `min_share`; the smaller mean loss over these sites wins.

    No site decides alone: of three sites or more, the one whose loss differs most between the two
    models differs at most as much as the one that comes next, or by `ALONE` of the others' mean
    loss, whichever is more. Else a site that reports a loss near 0 once, and a large one from then
    on, would keep that model the best, and end the training. Where no loss is limited so, and
    between two sites, of which nobody can say which one is wrong, it is the plain mean.

    A site that joins or comes back votes from the next best model on. When the best model lacks a
    column of a new class, or too few of the sites measured it, the next model that can be the best
    replaces it.

    Args:
        min_share: See above; above 0, at most 1. Default 0.5.

    Attributes:
        best: The best model, if there is one yet.
        sites: The run's sites with their classes.
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
        if self.best is None:
            why = "there was none before"
        elif lost := self.objection(self.best):
            why = f"that of round {self.best.round} cannot be any more: {lost}"
        else:
            return self._compare(model, self.best)
        self.best = model
        return Verdict(True, False, why)

    def _compare(self, model: Measured, best: Measured) -> Verdict:
        common = self._comparable(best) & self._comparable(model)
        if few := self._few(common, "both it and the best one"):
            return Verdict(False, False, few)
        limited, said = _limited(model, best, common)
        loss, least = limited.mean(common), best.mean(common)
        if loss < least:
            self.best = model
        why = (
            f"{loss:.4f} against {least:.4f} of round {best.round}, over the "
            f"{len(common)} sites that measured both{said}"
        )
        return Verdict(loss < least, True, why)

    def objection(self, model: Measured) -> str | None:
        """Why a model cannot be the best; None when it can."""
        lacking = [s for s, classes in self.sites.items() if not model.columns.issuperset(classes)]
        if lacking:
            return f"it has no columns for all classes of {sorted(lacking)}"
        return self._few(self._comparable(model), "it")

    def _comparable(self, model: Measured) -> set[str]:
        """Sites that measured a model over the classes that they have now."""
        present = model.losses.keys() & self.sites.keys()
        return {site for site in present if model.classes[site] == self.sites[site]}

    def _few(self, sites: set[str], what: str) -> str | None:
        if sites and len(sites) / len(self.sites) >= self.min_share:
            return None
        return (
            f"only {len(sites)} of {len(self.sites)} sites measured {what} with their present "
            f"classes, and {self.min_share:.0%} must"
        )


def _limited(model: Measured, best: Measured, common: set[str]) -> tuple[Measured, str]:
    """A model with no loss that decides alone against the best one, and what was limited."""
    moved = {site: model.losses[site] - best.losses[site] for site in common}
    *others, most = sorted(common, key=lambda site: (abs(moved[site]), site))
    limit = max(abs(moved[others[-1]]), ALONE * best.mean(others)) if len(others) > 1 else math.inf
    if abs(moved[most]) <= limit:
        return model, ""
    loss = best.losses[most] + math.copysign(limit, moved[most])
    said = f"; {most}'s {model.losses[most]:.4g} counts as {loss:.4f}, lest it decide alone"
    return replace(model, losses={**model.losses, most: loss}), said
