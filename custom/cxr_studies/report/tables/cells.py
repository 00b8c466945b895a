"""The cells of a study's tables: what our runs reach, and what the papers report of the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import pandas as pd

from cxr_studies.analysis import seed_intervals
from cxr_studies.analysis.paired_tests import mark
from cxr_studies.papers.published_results import AVERAGE, LOCAL, Place, Published
from cxr_studies.report.tables.layouts import Metric
from cxr_study.reports.page.numbers import UNDEFINED, figure, interval


@dataclass(frozen=True)
class Ours:
    """A mean over classes and over the seeds of finished runs, with its 95 % t interval.

    Attributes:
        runs: Finished seeds.
        seeds: Those that define the mean; all else is over these.
        value: The mean; None without a seed, as are the ends with fewer than two.
        sd: Of AUROC, over classes (over scenarios, of their average), mean over seeds; None of BCE
            and of a single class.
        classes: How many; the smallest number, where scenarios or seeds differ.
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
    """A cell of a table: what our runs reach of a metric, and what the papers report, if anything.

    `p` is of a test against surgical aggregation, if there was one. `best`: no other cell of the
    column is better, as shown. `real`: whether ours is of real data, as the papers' are; figures of
    drawings stand beside theirs and are not compared with them.
    """

    place: Place
    metric: Metric
    ours: Ours
    published: Published | None
    p: float | None = None
    best: bool = False
    real: bool = True

    @property
    def theirs(self) -> float | None:
        """Published value; None: there is none."""
        return None if self.published is None else getattr(self.published, self.metric)

    @property
    def difference(self) -> float | None:
        """Ours minus theirs; None without both, of drawings, or over other numbers of classes."""
        ours, theirs = self.ours.value, self.theirs
        alike = self.published is not None and self.published.classes == self.ours.classes
        alike = alike and self.real
        return ours - theirs if alike and ours is not None and theirs is not None else None

    @property
    def shown(self) -> str:
        """Ours as mean ± SD; `UNDEFINED`, or "" where no run is finished."""
        if self.ours.value is None:
            return UNDEFINED if self.ours.runs else ""
        return _spread(self.ours.value, self.ours.sd, 3)

    @property
    def interval_shown(self) -> str:
        """Our interval over seeds; "" where there is none."""
        return "" if self.ours.low is None else f"{self.ours.low:.3f} to {self.ours.high:.3f}"

    @property
    def published_shown(self) -> str:
        """Theirs, with the SD or interval that is printed; "" where there is none."""
        if self.published is None or self.theirs is None:
            return ""
        if self.metric == "bce":
            return figure(self.theirs, 2)
        if self.published.low is not None:
            return interval(self.theirs, self.published.low, self.published.high, 2)
        return _spread(self.theirs, self.published.sd, 2)

    @property
    def difference_shown(self) -> str:
        """Ours minus theirs, to their two decimals; "" where not comparable."""
        if self.difference is None:
            return ""
        told = figure(round(self.difference, 2) + 0.0, 2, signed=True)
        return told.replace("-", "\N{MINUS SIGN}")

    @property
    def mark(self) -> str:
        """Mark of significance; see `paired_tests.mark`."""
        return mark(self.p)

    def values(self) -> dict[str, object]:
        """Everything, unrounded where it is ours; a line of a csv file."""
        place, theirs = self.place, self.published
        auroc = theirs if self.metric == "auroc" else None
        return {
            "scenario": place.scenario,
            **asdict(place.row),
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
    """What our runs reach: the mean over scenarios, of the seeds for which all are defined.

    A site's local model is measured on the site's own test set; on a test set that is no site's in
    a scenario, the mean is over the sites whose models have all of its classes. `means`: see
    `study_results.by_run`; may have further groups of classes.
    """
    wanted = {**asdict(place.row), "test": place.test, "group": place.group}
    chosen = means[(means[list(wanted)] == pd.Series(wanted)).all(axis=1)]
    chosen = chosen[chosen["scenario"].isin(scenarios)]
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
