"""Select a run's best model when not every site has measured every model."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from surgical_aggregation.aggregation.metrics import of_classes

ALONE = 0.1
"""Change of loss always granted to one site, as a share of the others' mean loss."""


@dataclass(frozen=True)
class Measured:
    """A model and its losses.

    Attributes:
        round: Round of the model.
        columns: Classes that it has a column for.
        losses: Site -> loss, for every site that measured it.
        classes: Site -> the classes that its loss covers, sorted; for the same sites.
    """

    round: int
    columns: frozenset[str]
    losses: Mapping[str, float]
    classes: Mapping[str, Sequence[str]]

    def mean(self, sites: Iterable[str]) -> float:
        """Mean loss over `sites`, which must have measured it."""
        ordered = sorted(sites)
        return sum(self.losses[site] for site in ordered) / len(ordered)


class Verdict(NamedTuple):
    """Whether a model is the new best one, whether it was compared with the last best, and why."""

    best: bool
    compared: bool
    why: str


class ModelComparison:
    """Keeps the best model so far, by the mean loss over sites.

    The run's sites are those that measured any of its models, each with its newest classes. A model
    is eligible if it has a column for every class of every site, and at least `min_share` of the
    sites measured it. It is compared with the best one over the sites that measured both for the
    same classes, again at least `min_share`; the smaller mean loss over these sites wins.

    With three or more sites, the largest change of a site's loss between the two models is clipped
    to the second largest change, or to `ALONE` times the other sites' mean loss if that is more.
    Otherwise a site that reports a loss near 0 once, and large ones later, would keep that model
    the best and end the training. A site that reports a little less in every round can still keep
    later models the best: without `ALONE`, what one site gains would hardly count. With two sites
    there is no clipping, since either may be the wrong one.

    A site that joins or returns takes effect with the next best model. If the best model lacks a
    column of a new class, or too few of the sites measured it, the next eligible model replaces it.

    Args:
        min_share: See above; above 0, at most 1. Default 0.5.

    Attributes:
        best: The best model; None: there is none yet.
        sites: Site -> its classes, for the run's sites.

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
        """Compare a model with the best one, and replace that if the model is better."""
        self.sites |= model.classes
        if why := self.objection(model):
            return Verdict(False, False, why)
        if self.best is None:
            why = "there was none before"
        elif lost := self.objection(self.best):
            why = f"that of round {self.best.round} is no longer eligible: {lost}"
        else:
            return self._compare(model, self.best)
        self.best = model
        return Verdict(True, False, why)

    def _compare(self, model: Measured, best: Measured) -> Verdict:
        common = self._comparable(best) & self._comparable(model)
        if few := self._few(common, "both it and the best one"):
            return Verdict(False, False, few)
        limited, note = _limited(model, best, common)
        loss, least = limited.mean(common), best.mean(common)
        if loss < least:
            self.best = model
        why = (
            f"{loss:.4f} against {least:.4f} of round {best.round}, over the "
            f"{len(common)} sites that measured both{note}"
        )
        return Verdict(loss < least, True, why)

    def objection(self, model: Measured) -> str | None:
        """Why a model is not eligible; None: it is."""
        lacking = [s for s, classes in self.sites.items() if not model.columns.issuperset(classes)]
        if lacking:
            return f"it has no columns for all classes of {sorted(lacking)}"
        return self._few(self._comparable(model), "it")

    def _comparable(self, model: Measured) -> set[str]:
        """Sites that measured a model over their present classes."""
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
    """The outcome for a measured model.

    Attributes:
        verdict: See `Verdict`; among all models of the run.
        record: The model's record, see `Selection`.
        best_of_rounds: Whether it is now the best of the rounds' models.
        compared: Whether it was compared with the best of the rounds' models. Also true if there
            was none yet, and for a candidate.
        dropped: Round of the resumed run's best model, and why it cannot be this run's; None: it is
            not dropped.
    """

    verdict: Verdict
    record: dict[str, Any]
    best_of_rounds: bool
    compared: bool
    dropped: tuple[int, str] | None


@dataclass
class Selection:
    """Selects a run's best model from the sites' measurements of one model after another.

    The record of a model: {"round", "metric", "value": mean loss over the sites that measured it,
    "sites": site -> loss, "classes": site -> declared classes, "columns": classes of the model}.

    Candidates (models made after training) are compared with the best model, but not with the best
    of the rounds' models, from which early stopping counts.

    Args:
        metric: Name of the loss in the sites' metrics. Default "bce".
        min_share: See `ModelComparison`. Default 0.5.
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
        """Start from the records of an earlier run's best models; None: there are none."""
        self._earlier = best
        self._all.best = _of_record(best) if best else None
        self._rounds.best = _of_record(of_rounds or best) if best else None

    def begin(self) -> None:
        """Start measuring another model."""
        self._losses: dict[str, float] = {}
        self._classes: dict[str, list[str]] = {}
        self._auroc: dict[str, dict[str, float]] = {}

    def accept(self, site: str) -> None:
        """Record that a site's result was averaged, so that it votes on later models."""
        self._voters.add(site)

    def votes(self, site: str, trained: Iterable[str]) -> bool:
        """Whether a site may vote: it has trained (or is in `trained`) or measured the best."""
        measured = self._all.best.losses if self._all.best else {}
        return site in {*self._voters, *trained, *measured}

    def measure(self, site: str, metrics: Mapping[str, Any], classes: Iterable[str]) -> bool:
        """Add a site's metrics of the model; returns whether its loss is usable."""
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
        """Site -> class -> AUROC, for the model's columns only.

        Other classes were measured with columns that the site has warmed up itself.
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
        """Decide on the measured model.

        Args:
            round_: Round of the model.
            columns: Classes that it has a column for.
            sites: Sites of the run.
            gone: Sites that will not measure another model; they no longer count. Default: none.
            candidate: Whether the model was made after training. Default False.
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
        """Why the earlier run's best loss is not comparable in this run; None: it is."""
        if (metric := record.get("metric")) != self.metric:
            return f"its loss is {metric!r}, and this run's is {self.metric!r}"
        best = _of_record(record)
        earlier = {site: names for site, names in best.classes.items() if site in sites}
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
    """The model of a record; see `headers.BEST`. A checkpoint's may lack all but the round."""
    classes, sites = best.get("classes", {}), best.get("sites", {})
    losses = {site: loss for site, loss in sites.items() if site in classes}
    return Measured(best["round"], frozenset(best.get("columns", ())), losses, classes)


def _limited(model: Measured, best: Measured, common: set[str]) -> tuple[Measured, str]:
    """The model with its largest change of loss clipped, and a note of what was clipped."""
    moved = {site: model.losses[site] - best.losses[site] for site in common}
    *others, most = sorted(common, key=lambda site: (abs(moved[site]), site))
    limit = max(abs(moved[others[-1]]), ALONE * best.mean(others)) if len(others) > 1 else math.inf
    if abs(moved[most]) <= limit:
        return model, ""
    loss = best.losses[most] + math.copysign(limit, moved[most])
    note = f"; {most}'s {model.losses[most]:.4g} counts as {loss:.4f}, or it would decide alone"
    return replace(model, losses={**model.losses, most: loss}), note
