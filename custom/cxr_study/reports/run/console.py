"""What a run prints at its end."""

from rich.console import Console
from rich.table import Table
from rich.text import Text

from cxr_study.common.wording import duration
from cxr_study.evaluation.summary_json import Group, Model, Summary
from cxr_study.reports.page import numbers
from cxr_study.reports.run import run_view
from cxr_study.reports.run.notices import notices

COLUMNS: tuple[tuple[str, Group], ...] = (
    ("all classes", "all"),
    ("classes it labels", "labelled"),
    ("classes it does not label", "unlabelled"),
)
"""Heading -> classes of the mean."""


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
    table = Table(
        title="Mean AUROC on each site's test split (95 % interval)", title_justify="left"
    )
    table.add_column("site", overflow="fold")
    models = run_view.models(summary)
    if len(models) > 1:
        table.add_column("model")
    for heading, _ in COLUMNS:
        table.add_column(heading)
    for site in summary.sites:
        for model in models:
            cells = [Text(site if model == models[0] else "")]
            if len(models) > 1:
                cells.append(Text(run_view.MODELS[model]))
            cells += [_cell(summary, site, model, classes) for _, classes in COLUMNS]
            table.add_row(*cells, end_section=model == models[-1])
    return table


def _cell(summary: Summary, site: str, model: Model, classes: Group) -> Text:
    if model == "local" and classes != "labelled":
        return Text(numbers.UNDEFINED, "dim")
    row = run_view.mean(summary, model, site, classes)
    if row is None or (row.auroc is None and not row.few):
        return Text("no such class" if row is not None and row.of == 0 else "not defined", "dim")
    return Text(f"{run_view.interval(row, 3)}\nover {row.over}")
