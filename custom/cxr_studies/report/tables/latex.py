"""A table's caption and notes, and the table as LaTeX."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import pandas as pd

from cxr_studies.papers.published_results import LOCAL, SOURCES
from cxr_studies.plan.row import TITLES
from cxr_studies.plan.run_folder import SERVER
from cxr_studies.report.tables.layouts import classes
from cxr_studies.report.tables.tables import Cell, Line, Table
from cxr_study.common.wording import join_names
from cxr_study.reports.page.numbers import UNDEFINED

_ESCAPES = str.maketrans(
    {character: f"\\{character}" for character in "{}$&#%_"}
    | {character: rf"\ensuremath{{{character}}}" for character in "<>|"}
    | {"\\": r"\textbackslash{}", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}"}
    | {"±": r"\ensuremath{\pm}", "≤": r"\ensuremath{\leq}", "\N{MINUS SIGN}": r"\ensuremath{-}"}
    | {"\N{EN DASH}": "--", '"': "''"}
)

HEAD = "% Needs the package booktabs.\n\n"
"""First line of a file with such tables."""


def latex(table: Table, study: str) -> str:
    """Write a table as a LaTeX `table` environment, with published values below ours.

    It needs the package booktabs. The notes follow the caption. The label is `tab:` and the names
    of study and table.

    Args:
        table: The table.
        study: Name of the study.
    """
    lines = []
    for line in table.lines:
        ours = [_ours(cell) for cell in line.cells]
        lines.append([escape(line.heading), escape(line.row.strategy_title), *ours])
        for heading, texts in _below(line).items():
            lines.append([rf"\quad {escape(heading)}", "", *map(escape, texts)])
    over = [text for text, columns in table.spans for _ in range(columns)]
    below = [column.heading for column in table.columns]
    headings = [["", "", *map(escape, each)] for each in (over, below) if each]
    columns = pd.MultiIndex.from_arrays(headings) if over else headings[0]
    frame = pd.DataFrame(lines, columns=columns)
    return frame.style.hide(axis="index").to_latex(
        hrules=True,
        position_float="centering",
        column_format=f"ll{'c' * len(table.columns)}",
        multicol_align="c",
        caption=escape(" ".join([caption(table), *notes(table)])),
        label=f"tab:{re.sub('[^A-Za-z0-9-]', '-', f'{study}-{table.name}')}",
    )


def _ours(cell: Cell) -> str:
    """Our value of a cell, bold where it is best, with its mark."""
    shown = escape(cell.shown)
    mark = (
        rf"\textsuperscript{{{escape(cell.significance_mark)}}}" if cell.significance_mark else ""
    )
    return (rf"\textbf{{{shown}}}" if cell.best else shown) + mark


def escape(value: object) -> str:
    """Escape a value for LaTeX text, on one line.

    Args:
        value: Any value; runs of white space become a blank.
    """
    return " ".join(str(value).split()).translate(_ESCAPES)


def _below(line: Line) -> dict[str, list[str]]:
    """Heading -> texts, of the lines below a line's own values."""
    compared = any(cell.difference_shown for cell in line.cells)
    texts = {
        "95 % interval over seeds": [cell.interval_shown for cell in line.cells],
        "published [difference]" if compared else "published": [
            f"{cell.published_shown} {cell.published_mark}".rstrip()
            + (f" [{cell.difference_shown}]" if cell.difference_shown else "")
            for cell in line.cells
        ],
    }
    return {heading: shown for heading, shown in texts.items() if any(shown)}


def caption(table: Table) -> str:
    """Title, metric, our data and seeds, and the papers that published values are from."""
    bce = any(column.metric == "bce" for column in table.columns)
    seeds = _range([cell.ours.runs for cell in table.cells if cell.ours.runs])
    parts = [
        f"{table.title}.",
        f"Mean AUROC ± SD over classes{', and mean BCE' if bce else ''}.",
        f"Ours: {table.data}, {seeds} {'seed' if seeds == '1' else 'seeds'}.",
    ]
    sources = dict.fromkeys(cell.published.citation for cell in table.cells if cell.published)
    if sources:
        parts.append(f"Published: {join_names(tuple(sources))}.")
    return " ".join(parts)


def notes(table: Table) -> tuple[str, ...]:
    """Notes on a table: explanations of its marks, gaps and differences.

    Args:
        table: The table.

    Returns:
        Only those notes that the table needs.
    """
    cells = table.cells
    complete = any(line.row.method == "complete" for line in table.lines)
    apart = f", {TITLES['complete'].lower()} apart" if complete else ""
    columns = list(zip(*(line.cells for line in table.lines), strict=True))
    marks = [
        [cell.significance_mark for cell in column]
        for column in columns
        if column[0].metric == "auroc"
    ]
    marked = any(map(any, marks))
    of_server = {line.row.job_strategy for line in table.lines if line.model == SERVER}
    notes_if = {
        _numbers_of_classes(table): any(cell.ours.seeds for cell in cells),
        f"Bold: best of the column{apart}.": any(cell.best for cell in cells),
        f"{UNDEFINED}: not defined, for the model does not have a class.": any(
            cell.shown == UNDEFINED for cell in cells
        ),
        "Average: mean and SD over the scenarios.": any(
            len(column.scenarios) > 1 for column in table.columns
        ),
        "Rows without a global model: each site's local model on the site's own test set; on a "
        "test set of no site, the mean over the sites whose models have all of its classes.": any(
            line.model == LOCAL for line in table.lines
        ),
        "Published without a federation: one model, whichever batch norm ours has.": any(
            cell.published and not cell.published.place.row.strategy for cell in cells
        ),
        "No difference: the published mean is over another number of classes.": any(
            not cell.apart
            and cell.ours.value is not None
            and cell.theirs is not None
            and cell.difference is None
            for cell in cells
        ),
        **{why: True for cell in cells if cell.theirs is not None for why in cell.apart},
        "Against surgical aggregation, by paired t-test or Wilcoxon's signed-rank test over "
        "classes in a scenario and over scenarios in the average, with Holm's correction: * p ≤ "
        "0.05, ** p ≤ 0.01, *** p ≤ 0.001, ns: not significant.": marked,
        "No mark in a column: not tested.": marked and not all(map(any, marks)),
        "Published marks, with the same limits, and p values are against surgical aggregation "
        "with batch norm frozen, without a correction.": any(cell.published_mark for cell in cells),
        "Server's model: the sites' body and columns averaged, with the initial body's batch norm. "
        "Which one FedFBN's FedBN (Global) has is not published.": "fedbn" in of_server,
        **{
            f"Server's model of strategy {name}: columns and body averaged, with the initial "
            "body's values of the variables that the strategy keeps at the sites.": True
            for name in sorted(of_server - {"fedbn"})
        },
        **dict.fromkeys(_mixed(table), True),
    }
    return tuple(text for text, holds in notes_if.items() if holds)


def _numbers_of_classes(table: Table) -> str:
    numbers: dict[str, list[int]] = {}
    for cell in table.cells:
        if cell.ours.seeds:
            name = classes(cell.place.test, cell.place.group)
            numbers.setdefault(name, []).append(cell.ours.classes)
    counts = [f"{_range(found)} ({name})" for name, found in numbers.items()]
    return f"Number of classes: {join_names(counts)}."


def _mixed(table: Table) -> Iterator[str]:
    """Which paper has which column, for each line with figures of several."""
    for line in table.lines:
        headings: dict[str, list[str]] = {}
        for column, cell in zip(table.columns, line.cells, strict=True):
            if cell.published is not None:
                headings.setdefault(SOURCES[cell.published.source], []).append(column.heading)
        if len(headings) > 1:
            parts = [f"{source} ({join_names(columns)})" for source, columns in headings.items()]
            yield f"Published of {line.heading}: {'; '.join(parts)}."


def _range(numbers: Sequence[int]) -> str:
    few, many = min(numbers), max(numbers)
    return str(many) if few == many else f"{few} to {many}"
