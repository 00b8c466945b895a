"""A study's tables: lines are methods with strategies, columns are test sets, classes or scenarios.

A cell has the result of our runs, and the papers' result of the same experiment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain

import pandas as pd

from cxr_studies.analysis.intervals_and_tests import interval, significance_mark
from cxr_studies.analysis.study_results import GROUPS, StudyResults, by_run
from cxr_studies.papers import published_data, published_results
from cxr_studies.papers.published_data import DataUse
from cxr_studies.papers.published_results import AVERAGE, LOCAL, Place, Published
from cxr_studies.plan.row import Row
from cxr_studies.plan.run_folder import GLOBAL, SERVER
from cxr_studies.report.tables import layouts
from cxr_studies.report.tables.layouts import TESTS, Column, Layout, Metric, model_title
from cxr_study.reports.page import numbers
from cxr_study.reports.page.numbers import UNDEFINED, figure

PValues = Mapping[Place, float]
"""What a cell is of -> p value of a test of its AUROC against surgical aggregation."""

ReasonsApart = Callable[[Published, "Column"], tuple[str, ...]]
"""Why values of a column are of other data than a published one; empty where they are not."""

DRAWINGS = (
    "Our results are on drawings, the published ones on real data: both are shown, not compared."
)

_DECIMALS = 3  # what looks the same is the best together


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
    """A cell of a table: a metric of our runs, and the papers' value, if there is one.

    Attributes:
        place: What the mean is of.
        metric: "auroc" or "bce".
        ours: The result of our runs.
        published: The papers' result of the same experiment; None: there is none.
        p: Of a test against surgical aggregation, adjusted; None without one.
        best: Whether no other cell of the column is better, as rounded.
        apart: Why our data are not theirs; if there is a reason, both are shown but not compared.
    """

    place: Place
    metric: Metric
    ours: Ours
    published: Published | None
    p: float | None = None
    best: bool = False
    apart: tuple[str, ...] = ()

    @property
    def theirs(self) -> float | None:
        """Published value of the metric; None: there is none."""
        return None if self.published is None else getattr(self.published, self.metric)

    @property
    def difference(self) -> float | None:
        """Ours minus theirs; None without both, of other data, or over other numbers of classes."""
        ours, theirs = self.ours.value, self.theirs
        alike = self.published is not None and self.published.classes == self.ours.classes
        alike = alike and not self.apart
        return ours - theirs if alike and ours is not None and theirs is not None else None

    @property
    def shown(self) -> str:
        """Our value as mean ± SD; `UNDEFINED`, or "" where no run is finished."""
        if self.ours.value is None:
            return UNDEFINED if self.ours.runs else ""
        return _spread(self.ours.value, self.ours.sd, 3)

    @property
    def interval_shown(self) -> str:
        """Our interval over seeds; "" where there is none."""
        return "" if self.ours.low is None else f"{self.ours.low:.3f} to {self.ours.high:.3f}"

    @property
    def published_shown(self) -> str:
        """Published value with the SD or interval that is printed; "" where there is none."""
        if self.published is None or self.theirs is None:
            return ""
        if self.metric == "bce":
            return figure(self.theirs, 2)
        if self.published.low is not None:
            return numbers.interval(self.theirs, self.published.low, self.published.high, 2)
        return _spread(self.theirs, self.published.sd, 2)

    @property
    def published_mark(self) -> str:
        """Published mark of significance, or p value where that is printed; "" without one."""
        theirs = self.published
        if theirs is None or self.metric != "auroc":
            return ""
        if not theirs.p:
            return theirs.mark
        return f"p {theirs.p.replace('<', '< ')}" if "<" in theirs.p else f"p = {theirs.p}"

    @property
    def difference_shown(self) -> str:
        """Ours minus theirs, rounded to two decimals as theirs; "" where they are not compared."""
        if self.difference is None:
            return ""
        text = figure(round(self.difference, 2) + 0.0, 2, signed=True)
        return text.replace("-", "\N{MINUS SIGN}")

    @property
    def significance_mark(self) -> str:
        """Mark of significance; see `intervals_and_tests.significance_mark`."""
        return significance_mark(self.p)

    def values(self) -> dict[str, object]:
        """Everything, our values unrounded: a line of a csv file."""
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
            "published_mark": getattr(auroc, "mark", None) or None,
            "published_p": getattr(auroc, "p", None) or None,
            "source": getattr(theirs, "citation", None),
            "difference": self.difference,
            "holm": self.p,
            "mark": self.significance_mark or None,
            "best": self.best,
        }


def measure(means: pd.DataFrame, place: Place, metric: Metric, scenarios: Sequence[str]) -> Ours:
    """The result of our runs: the mean over scenarios, of the seeds for which all are defined.

    A site's local model is measured on the site's own test set; on a test set that is no site's in
    a scenario, the mean is over the sites whose models have all of its classes.

    Args:
        means: See `study_results.by_run`; may have further groups of classes.
        place: What the mean is of.
        metric: "auroc" or "bce".
        scenarios: Names; several for an average.
    """
    wanted = {**asdict(place.row), "test": place.test, "group": place.group}
    chosen = means[(means[list(wanted)] == pd.Series(wanted)).all(axis=1)]
    chosen = chosen[chosen["scenario"].isin(scenarios)]
    if place.model == LOCAL:
        chosen = chosen[chosen["model"] != SERVER]
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
    found = interval(values.tolist())
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


@dataclass(frozen=True)
class Line:
    """A line: how the models were trained, whose they are, and a cell for each column.

    Attributes:
        row: Method and strategy.
        model: `GLOBAL`, `SERVER`, `LOCAL`, or the site that the local model belongs to.
        cells: One for each column.
    """

    row: Row
    model: str
    cells: tuple[Cell, ...]

    @property
    def heading(self) -> str:
        """Method and, if it is not the global or local one, model; the strategy is shown apart."""
        own = "" if self.model in (GLOBAL, LOCAL) else f", {model_title(self.model)}"
        return f"{self.row.title}{own}"


@dataclass(frozen=True, kw_only=True)
class Table(Layout):
    """A table: a layout with its values, without columns and lines that have no finished run.

    Attributes:
        data: On which data our runs are, in words.
        lines: At least one.
    """

    data: str
    lines: tuple[Line, ...]

    @property
    def cells(self) -> tuple[Cell, ...]:
        """All of them, line by line."""
        return tuple(cell for line in self.lines for cell in line.cells)


def tables(
    results: StudyResults,
    data: str,
    p_values: PValues | None = None,
    *,
    data_use: Mapping[str, DataUse] | None,
) -> tuple[Table, ...]:
    """The tables of a study, as far as runs are finished.

    "nih-chexpert" and "fedfbn" have those of their papers, any other study those of an ablation;
    see `layouts`.

    Args:
        results: Of the study.
        data: On which data our runs are, in words, for the caption.
        p_values: Of the cells.
        data_use: Data set -> how it is used; None: all are drawings.
    """
    study = results.study
    finished = set(results.means["scenario"])
    changed = {scenario.name for scenario in study.scenarios} - published_results.as_shipped(study)
    published: tuple[Published, ...] = ()
    if study.name in layouts.PAPERS and not changed:
        chosen = layouts.PAPERS[study.name]
        published = published_results.of_study(study)
    elif study.given:
        chosen = tuple(layouts.of_test_splits(study, results.means))
    else:  # averages are compared where ours are over all scenarios, too
        whole = finished.issuperset(scenario.name for scenario in study.scenarios)
        every = published_results.of_study(study)
        published = tuple(line for line in every if whole or line.place.scenario != AVERAGE)
        chosen = tuple(layouts.ablation(study, finished, published))
    trained = {scenario.name: scenario.data_sets for scenario in study.scenarios}

    def apart(line: Published, column: Column) -> tuple[str, ...]:
        if data_use is None:
            return (DRAWINGS,)
        names = {column.test, *chain.from_iterable(trained[name] for name in column.scenarios)}
        used = {name: data_use[name] for name in TESTS if name in names & data_use.keys()}
        source = published_results.SOURCES[line.source]
        differences = published_data.differences(line.source, used)
        return tuple(
            f"{TESTS[name]} is not that of {source}, so no difference: {text}."
            for name, text in differences.items()
        )

    means = pd.concat([results.means, *_of_sites(results, chosen)], ignore_index=True)
    built = (
        build(
            layout,
            study.rows,
            means,
            data=data,
            published=published,
            p_values=p_values,
            apart=apart,
        )
        for layout in chosen
    )
    return tuple(table for table in built if table is not None)


def build(
    layout: Layout,
    rows: Iterable[Row],
    means: pd.DataFrame,
    *,
    data: str,
    published: Sequence[Published] = (),
    p_values: PValues | None = None,
    apart: ReasonsApart = lambda line, column: (),
) -> Table | None:
    """Fill a table with values.

    A row is one line, two where the server has a model in addition to the sites', or one for each
    site's local model where data sets are the sites. Lines without a finished run are left out.

    Args:
        layout: Which columns it has.
        rows: Of the study.
        means: See `study_results.by_run`; may have further groups of classes.
        data: On which data our runs are, in words.
        published: Results of the papers; the first of a place is shown.
        p_values: Of the cells.
        apart: Why a published value is not compared with a column's.

    Returns:
        None where no run is finished.
    """
    published = [line for line in published if layout.source in ("", line.source)]

    def cell(column: Column, place: Place) -> Cell:
        ours = measure(means, place, column.metric, column.scenarios)
        p = (p_values or {}).get(place) if column.metric == "auroc" else None
        theirs = published_results.find(published, place)
        why = () if theirs is None else apart(theirs, column)
        return Cell(place, column.metric, ours, theirs, p, apart=why)

    shown = layout.rows(list(rows))
    heads = [(row, model) for row in shown for model in _models(row, layout.columns, means)]
    kept = {}
    for column in layout.columns:
        cells = [cell(column, column.place(*head)) for head in heads]
        if any(each.ours.runs for each in cells):
            kept[column] = _with_best(cells)
    if not kept:
        return None
    across = zip(*kept.values(), strict=True)
    lines = tuple(Line(*head, cells) for head, cells in zip(heads, across, strict=True))
    return Table(layout.name, layout.title, tuple(kept), data=data, lines=lines)


def _models(row: Row, columns: Sequence[Column], means: pd.DataFrame) -> list[str]:
    """Names of the models of a row that have a line."""
    mine = means[
        (means["method"] == row.method)
        & (means["strategy"] == row.strategy)
        & means["test"].isin([column.test for column in columns])
        & means["scenario"].isin([name for column in columns for name in column.scenarios])
    ]
    models = list(dict.fromkeys(mine["model"]))
    if row.method == "individual" and set(models) <= set(TESTS):
        return models
    common = [model for model in models if model in (GLOBAL, SERVER)]
    return [LOCAL, *common] if models and GLOBAL not in models else models


def _with_best(cells: Sequence[Cell]) -> list[Cell]:
    """A column's cells, the best of several marked; "complete" has more labels and is left out."""
    shown = {
        cell.place: round(cell.ours.value, _DECIMALS)
        for cell in cells
        if cell.ours.value is not None and cell.place.row.method != "complete"
    }
    if len(shown) < 2:
        return list(cells)
    best = max(shown.values()) if cells[0].metric == "auroc" else min(shown.values())
    return [replace(cell, best=shown.get(cell.place) == best) for cell in cells]


def _of_sites(results: StudyResults, chosen: Sequence[Layout]) -> Iterator[pd.DataFrame]:
    """Means over the classes of single sites, where a table has such a group."""
    wanted = {column.group for layout in chosen for column in layout.columns} - set(GROUPS)
    labelled = {
        (run.scenario, site): names
        for run in results.runs
        for site, names in run.what["sites"].items()
        if site in wanted
    }
    scores = results.scores
    for (scenario, site), names in labelled.items():
        found = scores[(scores["scenario"] == scenario) & scores["class"].isin(names)]
        if not found.empty:
            means = by_run(found)
            yield means[means["group"] == "all"].assign(group=site)
