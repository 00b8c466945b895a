"""A study's tables: lines are ways to train, columns are test sets, classes or scenarios."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pandas as pd

from cxr_studies.analysis.study_results import GROUPS, StudyResults, by_run
from cxr_studies.papers import published_results
from cxr_studies.papers.published_results import AVERAGE, LOCAL, Place, Published
from cxr_studies.plan.row import Row
from cxr_studies.plan.run_folder import GLOBAL
from cxr_studies.report.tables import layouts
from cxr_studies.report.tables.cells import Cell, measure
from cxr_studies.report.tables.layouts import TESTS, Column, Layout

PValues = Mapping[Place, float]
"""What a cell is about -> p of a test of its AUROC against surgical aggregation."""

_DECIMALS = 3  # what looks the same is the best together


@dataclass(frozen=True)
class Line:
    """A line: how the models were trained, whose they are, and a cell for each column.

    `model` is `GLOBAL`, `LOCAL`, or the site whose local model it is.
    """

    row: Row
    model: str
    cells: tuple[Cell, ...]

    @property
    def heading(self) -> str:
        """What the line is about; its strategy is `row.strategy_title`."""
        site = "" if self.model in (GLOBAL, LOCAL) else f", {TESTS[self.model]}"
        return f"{self.row.title}{site}"


@dataclass(frozen=True, kw_only=True)
class Table(Layout):
    """A table: a layout with its figures, without columns and lines that have no finished run.

    `data` says on which data our runs are.
    """

    data: str
    lines: tuple[Line, ...]

    @property
    def cells(self) -> tuple[Cell, ...]:
        """All of them, line by line."""
        return tuple(cell for line in self.lines for cell in line.cells)


def tables(
    results: StudyResults, data: str, p_values: PValues | None = None, *, real: bool = True
) -> tuple[Table, ...]:
    """The tables of a study, as far as runs are finished; `data`: on which data, for the caption.

    "nih-chexpert" and "fedfbn" have those of their papers, any other study those of an ablation;
    see `layouts`.
    """
    study = results.study
    finished = set(results.means["scenario"])
    changed = {scenario.name for scenario in study.scenarios} - published_results.as_shipped(study)
    published: tuple[Published, ...] = ()
    if study.name in layouts.PAPERS and not changed:
        source, chosen = layouts.PAPERS[study.name]
        published = published_results.of_study(study, source)
    elif study.given:
        chosen = tuple(layouts.of_test_splits(study, results.means))
    else:  # averages are compared where ours are over all scenarios, too
        whole = finished.issuperset(scenario.name for scenario in study.scenarios)
        every = published_results.of_study(study)
        published = tuple(line for line in every if whole or line.place.scenario != AVERAGE)
        chosen = tuple(layouts.ablation(study, finished, published))
    means = pd.concat([results.means, *_of_sites(results, chosen)], ignore_index=True)
    built = (
        build(
            layout, study.rows, means, data=data, published=published, p_values=p_values, real=real
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
    real: bool = True,
) -> Table | None:
    """Fill a table; None where no run is finished.

    A row is a line, or one for each site's local model where data sets are the sites; those without
    a finished run are left out. `means`: see `study_results.by_run`; may have further groups of
    classes. Of several published figures of a cell the first stands beside ours. `real`: of `Cell`.
    """

    def cell(column: Column, place: Place) -> Cell:
        ours = measure(means, place, column.metric, column.scenarios)
        p = (p_values or {}).get(place) if column.metric == "auroc" else None
        return Cell(
            place, column.metric, ours, published_results.find(published, place), p, real=real
        )

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
    """Which models of a row have a line."""
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
