"""The cells of a study's tables: what our runs reach, and what the papers report of the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import pandas as pd

from cxr_study.evaluation import seed_intervals
from cxr_study.evaluation.paired_tests import mark
from cxr_study.reports.page.numbers import UNDEFINED, figure, interval
from cxr_study.reports.study.tables.layouts import Metric
from cxr_study.studies.papers.published_results import AVERAGE, LOCAL, Place, Published


@dataclass(frozen=True)
class Ours:
    """A mean over classes, of finished runs.

    Attributes:
        runs: Seeds that are finished.
        seeds: Those of them that define it; the rest of the figures are theirs.
        value: Mean over seeds; None without one.
        sd: Of AUROC: over classes, or over scenarios where the mean is over them, too; mean over
            seeds. None of BCE, and of a single class.
        low: Lower end of the 95 % t interval over seeds; None with fewer than two.
        high: Upper end, likewise.
        classes: Over how many classes; the fewest, where scenarios or seeds differ.
    """

    runs: int
    seeds: int
    value: float | None
    sd: float | None
    low: float | None
    high: float | None
    classes: int


@dataclass(frozen=True)
class Cell:
    """A cell.

    Attributes:
        place: What it is of.
        metric: Of both ours and theirs.
        ours: What our runs reach.
        published: What the papers report; None: nothing.
        p: Of a test against surgical aggregation; None: none was made.
        best: Whether no other of the column is better, as shown.
    """

    place: Place
    metric: Metric
    ours: Ours
    published: Published | None
    p: float | None = None
    best: bool = False

    @property
    def theirs(self) -> float | None:
        """Published value; None: there is none."""
        return None if self.published is None else getattr(self.published, self.metric)

    @property
    def difference(self) -> float | None:
        """Ours minus theirs; None where one is not there, or over another number of classes."""
        ours, theirs = self.ours.value, self.theirs
        if ours is None or theirs is None or self.published is None:
            return None
        return ours - theirs if self.published.classes == self.ours.classes else None

    @property
    def shown(self) -> str:
        """Ours, for people: mean ± SD; `UNDEFINED`, or "" where no run is finished."""
        if self.ours.value is None:
            return UNDEFINED if self.ours.runs else ""
        return _spread(self.ours.value, self.ours.sd, 3)

    @property
    def interval_shown(self) -> str:
        """Interval over seeds, for people; "" where there is none."""
        return "" if self.ours.low is None else f"{self.ours.low:.3f} to {self.ours.high:.3f}"

    @property
    def published_shown(self) -> str:
        """Theirs, for people, with SD or interval where printed; "" where there is none."""
        if self.published is None or self.theirs is None:
            return ""
        if self.metric == "bce":
            return figure(self.theirs, 2)
        if self.published.low is not None:
            return interval(self.theirs, self.published.low, self.published.high, 2)
        return _spread(self.theirs, self.published.sd, 2)

    @property
    def difference_shown(self) -> str:
        """Ours minus theirs, for people, to their two decimals; "" where not comparable."""
        if self.difference is None:
            return ""
        told = figure(round(self.difference, 2) + 0.0, 2, signed=True)
        return told.replace("-", "\N{MINUS SIGN}")

    @property
    def mark(self) -> str:
        """Of significance; see `paired_tests.mark`."""
        return mark(self.p)

    def values(self) -> dict[str, object]:
        """All of it, unrounded where it is ours; for a line of a csv file."""
        place, theirs = self.place, self.published
        auroc = theirs if self.metric == "auroc" else None
        return {
            "scenario": place.scenario,
            "method": place.row.method,
            "strategy": place.row.strategy,
            "model": place.model,
            "test": place.test,
            "group": place.group,
            "metric": self.metric,
            **asdict(self.ours),
            "published": self.theirs,
            **{f"published_{name}": getattr(auroc, name, None) for name in ("sd", "low", "high")},
            "published_classes": getattr(theirs, "classes", None),
            "source": getattr(theirs, "citation", None),
            "difference": self.difference,
            "holm": self.p,
            "best": self.best,
        }


def measure(means: pd.DataFrame, place: Place, metric: Metric, scenarios: Sequence[str]) -> Ours:
    """What our runs reach.

    A site's own model is measured on its own test set; on one that is no site's in a scenario it is
    the mean over the sites whose models have all its classes.

    Args:
        means: See `means.by_run`; further groups of classes may be in it.
        place: What is asked for.
        metric: Of it.
        scenarios: Names; the mean is over all of them, of the seeds for which they all are defined.
    """
    chosen = means[
        (means["method"] == place.row.method)
        & (means["strategy"] == place.row.strategy)
        & (means["test"] == place.test)
        & (means["group"] == place.group)
        & means["scenario"].isin(scenarios)
    ]
    if place.model == LOCAL:
        own = chosen["model"] == place.test
        chosen = chosen[own | ~own.groupby(chosen["scenario"]).transform("any")]
    else:
        chosen = chosen[chosen["model"] == place.model]
    sd = f"{metric}_sd"
    counted = chosen["classes"].where(chosen[metric].notna())
    # A mean over models leaves out those that do not define it.
    each = chosen.assign(classes=counted).groupby(["seed", "scenario"])[[metric, sd, "classes"]]
    by_scenario = each.mean().reset_index().groupby("seed")
    finished = by_scenario["scenario"].nunique() == len(scenarios)
    complete = by_scenario[metric].count() == len(scenarios)
    values = by_scenario[metric].mean()[complete]
    spreads = by_scenario[metric].std() if place.scenario == AVERAGE else by_scenario[sd].mean()
    spread = spreads[complete].mean() if metric == "auroc" else float("nan")
    found = seed_intervals.interval(values.tolist())
    return Ours(
        runs=int(finished.sum()),
        seeds=int(complete.sum()),
        value=None if found is None else found.mean,
        sd=None if pd.isna(spread) else float(spread),
        low=None if found is None else found.low,
        high=None if found is None else found.high,
        classes=0 if found is None else int(by_scenario["classes"].min()[complete].min()),
    )


def _spread(value: float, sd: float | None, decimals: int) -> str:
    shown = figure(value, decimals)
    return shown if sd is None else f"{shown} ± {figure(sd, decimals)}"
