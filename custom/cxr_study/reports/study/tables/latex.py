"""A table as LaTeX, for a paper."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import resources
from itertools import accumulate, pairwise

from jinja2 import Environment, StrictUndefined

from cxr_study.reports.study.tables.captions import caption, notes
from cxr_study.reports.study.tables.tables import Line, Table

_ESCAPES = str.maketrans(
    {character: f"\\{character}" for character in "{}$&#%_"}
    | {character: rf"\ensuremath{{{character}}}" for character in "<>|"}
    | {"\\": r"\textbackslash{}", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}"}
    | {"±": r"\ensuremath{\pm}", "\N{MINUS SIGN}": r"\ensuremath{-}"}
    | {"\N{EN DASH}": "--", '"': "''"}
)

HEAD = "% Needs the packages booktabs and graphicx.\n\n"
"""The first line of a file with such tables."""


def latex(table: Table, study: str) -> str:
    """Write a table as a `table` environment, with published values below ours.

    It needs the packages booktabs and graphicx; the latter shrinks a table that is too wide, which
    a `landscape` of pdflscape keeps readable. The label is `tab:` and the names of study and table.
    """
    environment = Environment(
        *("<%", "%>", "<<", ">>", "<#", "#>"),
        trim_blocks=True,
        keep_trailing_newline=True,
        undefined=StrictUndefined,
        finalize=escape,
    )
    source = resources.files(__package__).joinpath("table.tex.j2").read_text(encoding="utf-8")
    ends = list(accumulate((number for _, number in table.spans), initial=2))
    return environment.from_string(source).render(
        table=table,
        label=re.sub("[^A-Za-z0-9-]", "-", f"{study}-{table.name}"),
        caption=caption(table),
        notes=" ".join(notes(table)),
        rules=[
            (before + 1, end)
            for (over, _), (before, end) in zip(table.spans, pairwise(ends), strict=True)
            if over
        ],
        below=_below,
    )


def escape(value: object) -> str:
    """Write a value as LaTeX text, whatever is in it, on one line."""
    return " ".join(str(value).split()).translate(_ESCAPES)


def _below(line: Line) -> Iterator[tuple[str, list[str]]]:
    """What stands below a line's figures: heading and texts, where there is one."""
    intervals = [cell.interval_shown for cell in line.cells]
    published = [
        cell.published_shown + (f" [{cell.difference_shown}]" if cell.difference_shown else "")
        for cell in line.cells
    ]
    if any(intervals):
        yield "95 % interval over seeds", intervals
    if any(published):
        yield "published [difference]", published
