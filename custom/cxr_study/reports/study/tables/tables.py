"""The tables of a study: lines are ways to train, columns are test sets, classes or scenarios.

A cell has what our runs reach, and beside it what the papers report.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pandas as pd

from cxr_study.jobs.methods import Row
from cxr_study.reports.study.tables.cells import Cell, measure
from cxr_study.reports.study.tables.layouts import (
    PAPERS,
    TESTS,
    Column,
    Layout,
    ablation,
    of_test_splits,
)
from cxr_study.studies.analysis.study_results import GROUPS, StudyResults, by_run
from cxr_study.studies.papers.published_results import (
    AVERAGE,
    LOCAL,
    Place,
    Published,
    as_shipped,
    find,
    of_study,
)
from cxr_study.studies.plan.run_folder import GLOBAL

PValues = Mapping[Place, float]
"""What a cell is of -> p of a test of its AUROC against surgical aggregation."""

_DECIMALS = 3  # what looks the same is the best together


@dataclass(frozen=True)
class Line:
    """A line.

    Attributes:
        row: How the models were trained.
        model: `GLOBAL`, `LOCAL`, or the site whose own it is.
        cells: One for each column.
    """

    row: Row
    model: str
    cells: tuple[Cell, ...]

    @property
    def heading(self) -> str:
        """What the line is of, its strategy apart, which is `row.variant`."""
        site = "" if self.model in (GLOBAL, LOCAL) else f", {TESTS[self.model]}"
        return f"{self.row.title}{site}"


@dataclass(frozen=True, kw_only=True)
class Table(Layout):
    """A table: a layout without columns of which no run is finished, and its figures.

    Attributes:
        data: On which data our runs are.
        lines: Those of which a run is finished.
    """

    data: str
    lines: tuple[Line, ...]

    @property
    def cells(self) -> tuple[Cell, ...]:
        """All of them, line by line."""
        return tuple(cell for line in self.lines for cell in line.cells)


def tables(results: StudyResults, data: str, p_values: PValues | None = None) -> tuple[Table, ...]:
    """The tables of a study, as far as runs are finished.

    "nih-chexpert" and "fedfbn" have those of their papers, any other study those of an ablation;
    see `layouts`.

    Args:
        results: Of the study.
        data: On which data, for the caption; such as "phantom, 2000 images of each data set".
        p_values: Of tests against surgical aggregation. Default: none.
    """
    study = results.study
    finished = set(results.means["scenario"])
    changed = {scenario.name for scenario in study.scenarios} - as_shipped(study)
    if study.name in PAPERS and not changed:
        source, layouts = PAPERS[study.name]
        published = of_study(study, source)
    elif study.given:
        published, layouts = (), tuple(of_test_splits(study, results.means))
    else:  # averages are compared where ours are over all scenarios, too
        whole = finished.issuperset(scenario.name for scenario in study.scenarios)
        published = tuple(
            line for line in of_study(study) if whole or line.place.scenario != AVERAGE
        )
        layouts = tuple(ablation(study, finished, published))
    means = pd.concat([results.means, *_of_sites(results, layouts)], ignore_index=True)
    built = (
        build(layout, study.rows, means, data=data, published=published, p_values=p_values)
        for layout in layouts
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
) -> Table | None:
    """Fill a table.

    Args:
        layout: Of it.
        rows: Each is a line, or several where sites that are data sets have trained alone: one for
            each site's model. Those of which no run is finished are left out.
        means: See `means.by_run`; further groups of classes may be in it.
        data: On which data our runs are.
        published: What stands beside ours; the first of several that are of the same.
        p_values: Default: none.

    Returns:
        None where no run is finished.
    """
    columns = layout.columns
    heads = [
        (row, model) for row in layout.rows(list(rows)) for model in _models(row, columns, means)
    ]
    grid = {
        column: [
            _cell(column, column.place(*head), means, published, p_values or {}) for head in heads
        ]
        for column in columns
    }
    kept = {
        column: _with_best(cells)
        for column, cells in grid.items()
        if any(cell.ours.runs for cell in cells)
    }
    if not kept:
        return None
    across = zip(*kept.values(), strict=True)
    lines = tuple(Line(*head, cells) for head, cells in zip(heads, across, strict=True))
    return Table(layout.name, layout.title, tuple(kept), data=data, lines=lines)


def _models(row: Row, columns: Sequence[Column], means: pd.DataFrame) -> list[str]:
    """What models of a row have lines of their own."""
    mine = means[
        (means["method"] == row.method)
        & (means["strategy"] == row.strategy)
        & means["test"].isin([column.test for column in columns])
        & means["scenario"].isin([name for column in columns for name in column.scenarios])
    ]
    models = list(dict.fromkeys(mine["model"]))
    if row.method == "individual" and set(models) <= set(TESTS):
        return models
    return [LOCAL] if models and GLOBAL not in models else models


def _cell(
    column: Column,
    place: Place,
    means: pd.DataFrame,
    published: Sequence[Published],
    p_values: PValues,
) -> Cell:
    ours = measure(means, place, column.metric, column.scenarios)
    p = p_values.get(place) if column.metric == "auroc" else None
    return Cell(place, column.metric, ours, find(published, place), p)


def _with_best(cells: Sequence[Cell]) -> list[Cell]:
    """A column's cells, those marked that are the best of several.

    "complete", which has labels that no other row has, is none of them.
    """
    shown = [
        None
        if cell.ours.value is None or cell.place.row.method == "complete"
        else round(cell.ours.value, _DECIMALS)
        for cell in cells
    ]
    values = [value for value in shown if value is not None]
    if len(values) < 2:
        return list(cells)
    best = max(values) if cells[0].metric == "auroc" else min(values)
    return [replace(cell, best=value == best) for cell, value in zip(cells, shown, strict=True)]


def _of_sites(results: StudyResults, layouts: Sequence[Layout]) -> Iterator[pd.DataFrame]:
    """Means over the classes of single sites, where a table has such a group."""
    wanted = {column.group for layout in layouts for column in layout.columns} - set(GROUPS)
    labelled = {
        (run.scenario, site): names
        for run in results.runs
        for site, names in run.what["sites"].items()
        if site in wanted
    }
    scores = results.scores
    for (scenario, site), names in labelled.items():
        chosen = scores[(scores["scenario"] == scenario) & scores["class"].isin(names)]
        if not chosen.empty:
            means = by_run(chosen)
            yield means[means["group"] == "all"].assign(group=site)
