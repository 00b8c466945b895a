"""Which of a run's models is the best, when not every site measured every one of them."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from surgical_aggregation.aggregation.metrics import of_classes

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


class Decision(NamedTuple):
    """What became of a model that was measured.

    Attributes:
        verdict: See `Verdict`; among all models of the run.
        record: The model's, as `Selection` keeps that of the best one.
        best_of_rounds: Whether it is now the best of the rounds' models.
        compared: Whether it was compared with the best of the rounds' models, or is one of them
            that could not be: there was none before, or it is no round's.
        dropped: Round of the best model of the run that is continued, and why it cannot be this
            run's; None: it can.
    """

    verdict: Verdict
    record: dict[str, Any]
    best_of_rounds: bool
    compared: bool
    dropped: tuple[int, str] | None


@dataclass
class Selection:
    """The choice of a run's best model, from what its sites measure of one model after the other.

    The record of a model: {"round", "metric", "value": mean loss over the sites that measured it,
    "sites": site -> loss, "classes": site -> declared classes, "columns": classes of the model}.

    Models that were made after training (candidates) are compared with the best one, and never with
    the best of the rounds' models, from which early stopping counts.

    Args:
        metric: Name of the loss in the sites' metrics.
        min_share: See `ModelComparison`.
    """

    metric: str = "bce"
    min_share: float = 0.5
    _voters: set[str] = field(default_factory=set)
    _earlier: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        self._all = ModelComparison(self.min_share)
        self._rounds = ModelComparison(self.min_share)
        self.begin()

    def continue_from(self, best: dict[str, Any] | None, of_rounds: dict[str, Any] | None) -> None:
        """Take over the records of an earlier run's best models; None: there are none to beat."""
        self._earlier = best
        self._all.best = _of_record(best) if best else None
        self._rounds.best = _of_record(of_rounds or best) if best else None

    def begin(self) -> None:
        """Another model is measured from now on."""
        self._losses: dict[str, float] = {}
        self._classes: dict[str, list[str]] = {}
        self._auroc: dict[str, dict[str, float]] = {}

    def accept(self, site: str) -> None:
        """A site's result was averaged, so it votes on later models."""
        self._voters.add(site)

    def votes(self, site: str, trained: Iterable[str]) -> bool:
        """Whether a site trained (in the run continued: `trained`), or measured the best model."""
        measured = self._all.best.losses if self._all.best else {}
        return site in {*self._voters, *trained, *measured}

    def measure(self, site: str, metrics: Mapping[str, Any], classes: Iterable[str]) -> bool:
        """Take what a site measured of the model; whether its loss can be used."""
        loss = metrics.get(self.metric)
        if not isinstance(loss, float) or not 0 <= loss < math.inf:
            return False
        self._losses[site] = loss
        self._classes[site] = sorted(classes)
        self._auroc[site] = of_classes("auroc", metrics)
        return True

    @property
    def measured(self) -> bool:
        """Whether any site has measured the model."""
        return bool(self._losses)

    def auroc(self, columns: Collection[str]) -> dict[str, dict[str, float]]:
        """Site -> class -> AUROC of the model, for its own columns.

        A site measures a column that the model does not have only after it has warmed it up.
        """
        return {
            site: {name: value for name, value in values.items() if name in columns}
            for site, values in sorted(self._auroc.items())
        }

    def decide(
        self,
        round_: int,
        columns: Iterable[str],
        *,
        sites: Collection[str],
        gone: Iterable[str] = (),
        candidate: bool = False,
    ) -> Decision:
        """Decide on the model that was measured.

        Args:
            round_: Its round.
            columns: Classes that it has a column for.
            sites: Those of the run.
            gone: Those that will not measure any model again; they are not waited for.
            candidate: Whether it was made after training.
        """
        model = Measured(round_, frozenset(columns), dict(self._losses), dict(self._classes))
        dropped = None
        if self._earlier and (why := self._incomparable(self._earlier, sites)):
            dropped = self._earlier["round"], why
            self.continue_from(None, None)
        for site in gone:
            self._all.sites.pop(site, None)
        self._rounds.sites = self._all.sites
        first = self._rounds.best is None
        of_rounds = Verdict(False, True, "") if candidate else self._rounds.consider(model)
        verdict = self._all.consider(model)
        if verdict.best:
            self._earlier = None
        compared = of_rounds.best or of_rounds.compared or first
        return Decision(verdict, self._record(model), of_rounds.best, compared, dropped)

    def _incomparable(self, record: dict[str, Any], sites: Collection[str]) -> str | None:
        """Why the earlier run's best loss is not one of this run's; None when it is."""
        if record["metric"] != self.metric:
            return f"its loss is {record['metric']!r}, and this run's is {self.metric!r}"
        best = _of_record(record)
        earlier = {site: of for site, of in best.classes.items() if site in sites}
        self._all.sites = {**earlier, **self._all.sites, **self._classes}
        return self._all.objection(best)

    def _record(self, model: Measured) -> dict[str, Any]:
        return {
            "round": model.round,
            "metric": self.metric,
            "value": model.mean(model.losses) if model.losses else None,
            "sites": dict(sorted(model.losses.items())),
            "classes": dict(sorted(model.classes.items())),
            "columns": sorted(model.columns),
        }


def _of_record(best: dict[str, Any]) -> Measured:
    """The model of a record, without sites whose classes it does not say, as older ones do not."""
    classes = best.get("classes", {})
    has = best.get("columns", [name for of in classes.values() for name in of])
    losses = {site: loss for site, loss in best.get("sites", {}).items() if site in classes}
    return Measured(best["round"], frozenset(has), losses, classes)


def _limited(model: Measured, best: Measured, common: set[str]) -> tuple[Measured, str]:
    """A model with no loss that decides alone against the best one, and what was limited."""
    moved = {site: model.losses[site] - best.losses[site] for site in common}
    *others, most = sorted(common, key=lambda site: (abs(moved[site]), site))
    limit = max(abs(moved[others[-1]]), ALONE * best.mean(others)) if len(others) > 1 else math.inf
    if abs(moved[most]) <= limit:
        return model, ""
    loss = best.losses[most] + math.copysign(limit, moved[most])
    said = f"; {most}'s {model.losses[most]:.4g} counts as {loss:.4f}, or it would decide alone"
    return replace(model, losses={**model.losses, most: loss}), said
