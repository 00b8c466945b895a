"""Tables for a terminal, and what a run prints at its end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from cxr_study.common.wording import duration
from cxr_study.evaluation.summary_json import ClassAuroc, MeanAuroc, Summary
from cxr_study.reports.page import numbers
from cxr_study.reports.run import run_view
from cxr_study.reports.run.notices import notices


def table(
    title: str | None,
    headings: Sequence[str],
    rows: Iterable[Sequence[object]],
    narrowest: int | None = None,
    **looks: Any,
) -> Table:
    """Make a table of texts, in which nothing is markup.

    Args:
        title: Above it; None: none.
        headings: Of the columns.
        rows: Their cells; None: an empty one. Long cells are folded, never cut.
        narrowest: Characters that a column after the first has at least. Default: as needed.
        looks: More arguments of rich's `Table`.
    """
    made = Table(title=title, title_justify="left", **looks)
    for number, heading in enumerate(headings):
        made.add_column(Text(heading), overflow="fold", min_width=narrowest if number else None)
    for row in rows:
        made.add_row(*(Text("" if cell is None else str(cell)) for cell in row))
    return made


def auroc_table(rows: Iterable[ClassAuroc], means: Iterable[MeanAuroc]) -> Table:
    """Make the table of AUROCs of classes at sites, and below them of their means.

    Args:
        rows: One for each class and site, in their order.
        means: One for each site; of each also over how many classes it is.

    Returns:
        With the 95 % intervals, as far as they are known, and the numbers of positive and negative
        test images, or that the site withholds them.
    """
    cells = [
        [row.class_name, row.site, numbers.auroc(row, 3), *map(numbers.count, counts)]
        for row, counts in ((row, (row.positives, row.negatives)) for row in rows)
    ]
    headings = ("class", "site", "AUROC (95 % interval)", "positive", "negative")
    made = table("AUROC on each site's test split", headings, cells)
    made.add_section()
    for mean in means:
        made.add_row("mean", Text(mean.site), run_view.mean_text(mean))
    return made


def print_summary(summary: Summary, console: Console | None = None) -> None:
    """Print a run's headlines, its mean AUROCs by site and model, and what limits them.

    Args:
        summary: Of the run. Its names are printed as text, not as markup.
        console: Default: standard output.
    """
    console = console or Console()
    console.print()
    console.print(Text(summary.title, style="bold"))
    for line in run_view.headlines(summary):
        console.print(Text(line))
    models = run_view.models(summary)
    named = len(models) > 1
    headings = ["site", *["model"] * named, *run_view.COLUMNS.values()]
    rows = [
        [site, *[run_view.MODELS[model]] * named, *run_view.mean_cells(summary, site, model)]
        for site in summary.sites
        for model in models
    ]
    title = "Mean AUROC on each site's test split (95 % interval)"
    console.print(table(title, headings, rows))
    loss = f"mean validation BCE {summary.best.mean_validation_bce:.3f}"
    took = duration(summary.wall_seconds)
    made = f"rounds {run_view.rounds_made(summary)}"
    console.print(Text(f"{summary.job}, {made}, {loss}, {took}."))
    for notice in notices(summary):
        console.print(Text.assemble((notice.heading, "bold yellow"), " ", notice.text))
    console.print(Text("Research only, not for diagnosis.", style="dim"))
