"""Tables of a study: lines are ways to train, columns are test sets, classes or settings.

A cell has what our runs reach, and beside it what the papers report.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import pandas as pd

from cxr_study.jobs.methods import Row
from cxr_study.reports.study.tables.cells import Cell, Metric, measure
from cxr_study.studies.papers.published_results import AVERAGE, OWN, Place, Published, find
from cxr_study.studies.plan.run_folder import GLOBAL


class _Titles(dict[str, str]):
    """What has no title is called by its name, as the sites of a hospital are."""

    def __missing__(self, name: str) -> str:
        return name


TESTS: Mapping[str, str] = _Titles(nih="NIH", chexpert="CheXpert", mimic="MIMIC")
"""Test set -> what it is called in tables; sites that are data sets are called likewise."""

PValues = Mapping[Place, float]
"""What a cell is of -> p of a test of its AUROC against surgical aggregation."""

_DECIMALS = 3  # what looks the same is the best together


@dataclass(frozen=True)
class Column:
    """A column.

    Attributes:
        heading: Its own.
        test: Name of the test set.
        settings: Name of the setting; of several, the mean is over them, too.
        group: Of classes; see `means.GROUPS`.
        metric: What is in it.
        over: Heading that it shares with its neighbours; "" for none.
    """

    heading: str
    test: str
    settings: tuple[str, ...]
    group: str = "all"
    metric: Metric = "auroc"
    over: str = ""

    def place(self, row: Row, model: str) -> Place:
        """What a cell of the column is of."""
        setting = self.settings[0] if len(self.settings) == 1 else AVERAGE
        return Place(setting, row, model, self.test, self.group)


@dataclass(frozen=True)
class Line:
    """A line.

    Attributes:
        row: How the models were trained.
        model: `GLOBAL`, `OWN`, or the site whose own it is.
        cells: One for each column.
    """

    row: Row
    model: str
    cells: tuple[Cell, ...]

    @property
    def heading(self) -> str:
        """What the line is of, its strategy apart, which is `row.variant`."""
        site = "" if self.model in (GLOBAL, OWN) else f", {TESTS.get(self.model, self.model)}"
        return f"{self.row.title}{site}"


@dataclass(frozen=True)
class Table:
    """A table.

    Attributes:
        name: For files and references; letters, digits and hyphens.
        title: For people.
        data: On which data our runs are.
        columns: Those of which a run is finished.
        lines: Likewise.
    """

    name: str
    title: str
    data: str
    columns: tuple[Column, ...]
    lines: tuple[Line, ...]

    @property
    def cells(self) -> tuple[Cell, ...]:
        """All of them, line by line."""
        return tuple(cell for line in self.lines for cell in line.cells)

    @property
    def spans(self) -> tuple[tuple[str, int], ...]:
        """Shared headings with their numbers of columns; empty where there is none."""
        spans = [(over, len(list(each))) for over, each in groupby(c.over for c in self.columns)]
        return tuple(spans) if any(over for over, _ in spans) else ()


def build(
    name: str,
    title: str,
    columns: Iterable[Column],
    rows: Iterable[Row],
    means: pd.DataFrame,
    *,
    data: str,
    published: Sequence[Published] = (),
    p_values: PValues | None = None,
) -> Table | None:
    """Fill a table.

    Args:
        name: For files and references.
        title: For people.
        columns: Those of which no run is finished are left out.
        rows: Likewise. Each is a line, or several where sites that are data sets have trained
            alone: one for each site's model.
        means: See `means.by_run`; further groups of classes may be in it.
        data: On which data our runs are.
        published: What stands beside ours; the first of several that are of the same.
        p_values: Default: none.

    Returns:
        None where no run is finished.
    """
    columns = tuple(columns)
    heads = [(row, model) for row in rows for model in _models(row, columns, means)]
    grid = [
        [_cell(column, row, model, means, published, p_values or {}) for row, model in heads]
        for column in columns
    ]
    kept = [i for i, cells in enumerate(grid) if any(cell.ours.runs for cell in cells)]
    if not kept:
        return None
    across = zip(*(_with_best(grid[i]) for i in kept), strict=True)
    lines = (Line(*head, cells) for head, cells in zip(heads, across, strict=True))
    return Table(name, title, data, tuple(columns[i] for i in kept), tuple(lines))


def _models(row: Row, columns: Sequence[Column], means: pd.DataFrame) -> list[str]:
    """What models of a row have lines of their own."""
    mine = means[
        (means["method"] == row.method)
        & (means["strategy"] == row.strategy)
        & means["test"].isin([column.test for column in columns])
        & means["setting"].isin([name for column in columns for name in column.settings])
    ]
    models = list(dict.fromkeys(mine["model"]))
    if row.method == "individual" and set(models) <= set(TESTS):
        return models
    return [OWN] if models and GLOBAL not in models else models


def _cell(
    column: Column,
    row: Row,
    model: str,
    means: pd.DataFrame,
    published: Sequence[Published],
    p_values: PValues,
) -> Cell:
    place = column.place(row, model)
    ours = measure(means, place, column.metric, column.settings)
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
