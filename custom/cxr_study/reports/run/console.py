"""Tables for a terminal, and what a run prints at its end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from cxr_study.common.wording import duration
from cxr_study.evaluation.summary_json import ClassAuroc, Group, MeanAuroc, Model, Summary
from cxr_study.reports.page import numbers
from cxr_study.reports.run import run_view
from cxr_study.reports.run.notices import notices

COLUMNS: tuple[tuple[str, Group], ...] = (
    ("all classes", "all"),
    ("classes it labels", "labelled"),
    ("classes it does not label", "unlabelled"),
)
"""Heading -> classes of the mean."""


def table(
    title: str | None,
    headings: Sequence[str],
    rows: Iterable[Sequence[object]],
    narrowest: int | None = None,
    **looks: Any,
) -> Table:
    """A table of texts, in which nothing is markup.

    Args:
        title: Above it; None: none.
        headings: Of the columns.
        rows: Their cells; None: an empty one.
        narrowest: Characters that a column after the first has at least.
        looks: More of rich's `Table`.
    """
    made = Table(title=title, title_justify="left", **looks)
    for number, heading in enumerate(headings):
        made.add_column(Text(heading), overflow="fold", min_width=narrowest if number else None)
    for row in rows:
        made.add_row(*(Text("" if cell is None else str(cell)) for cell in row))
    return made


def auroc_table(rows: Iterable[ClassAuroc], means: Iterable[MeanAuroc]) -> Table:
    """AUROCs of classes at sites, with their intervals and counts, and below them their means."""
    cells = [
        [row.class_name, row.site, numbers.auroc(row, 3), *map(numbers.count, counts)]
        for row, counts in ((row, (row.positives, row.negatives)) for row in rows)
    ]
    headings = ("class", "site", "AUROC (95 % interval)", "positive", "negative")
    made = table("AUROC on each site's test split", headings, cells)
    made.add_section()
    for mean in means:
        made.add_row("mean", Text(mean.site), mean_text(mean))
    return made


def mean_text(mean: MeanAuroc | None) -> str:
    """A mean with its interval, and over how many classes it is."""
    if mean is None or (mean.auroc is None and not mean.few):
        return "no such class" if mean is not None and mean.of == 0 else "not defined"
    return f"{numbers.auroc(mean, 3)}\nover {mean.over}"


def print_summary(summary: Summary, console: Console | None = None) -> None:
    """Print the answer, its limits and the mean AUROCs per site; to standard output by default."""
    console = console or Console()
    console.print()
    console.print(Text(summary.title, style="bold"))
    for line in run_view.headlines(summary):
        console.print(Text(line))
    console.print(_means(summary))
    loss = f"mean validation BCE {summary.best.mean_validation_bce:.3f}"
    took = duration(summary.wall_seconds)
    rounds = f"rounds {run_view.rounds_made(summary)}"
    console.print(Text(f"{summary.job}, {rounds}, {loss}, {took}."))
    for notice in notices(summary):
        console.print(Text.assemble((notice.heading, "bold yellow"), " ", notice.text))
    console.print(Text("Research only, not for diagnosis.", style="dim"))


def _means(summary: Summary) -> Table:
    """A row per site and model: mean AUROCs, each with its interval and over how many classes."""
    models = run_view.models(summary)
    named = len(models) > 1
    headings = ["site", *["model"] * named, *(heading for heading, _ in COLUMNS)]
    rows = [
        [site, *[run_view.MODELS[model]] * named, *_cells(summary, site, model)]
        for site in summary.sites
        for model in models
    ]
    return table("Mean AUROC on each site's test split (95 % interval)", headings, rows)


def _cells(summary: Summary, site: str, model: Model) -> list[str]:
    return [
        numbers.UNDEFINED
        if model == "local" and classes != "labelled"
        else mean_text(run_view.mean(summary, model, site, classes))
        for _, classes in COLUMNS
    ]
