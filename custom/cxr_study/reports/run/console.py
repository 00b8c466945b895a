"""What a run prints at its end."""

from rich.console import Console
from rich.table import Table
from rich.text import Text

from cxr_study.evaluation.summary_json import Group, Model, Summary
from cxr_study.reports.page.numbers import duration
from cxr_study.reports.run import run_view

COLUMNS: tuple[tuple[str, Model, Group], ...] = (
    ("all classes", "global", "all"),
    ("classes it labels", "global", "labelled"),
    ("classes it labels", "local", "labelled"),
    ("classes it does not label", "global", "unlabelled"),
)


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
    for notice in run_view.notices(summary):
        console.print(Text.assemble((notice.heading, "bold yellow"), " ", notice.text))
    console.print(Text("Research only, not for diagnosis.", style="dim"))


def _means(summary: Summary) -> Table:
    """One row per site: mean AUROC with its interval below, and over how many classes."""
    table = Table(
        title="Mean AUROC on each site's test split (95 % interval)", title_justify="left"
    )
    table.add_column("site", overflow="fold")
    trained = {row.model for row in summary.means}
    columns = [column for column in COLUMNS if column[1] in trained | {"global"}]
    for group, model, _ in columns:
        table.add_column(Text(f"{group}\n{model} model"))
    for site in summary.sites:
        cells = [_cell(summary, site, model, classes) for _, model, classes in columns]
        table.add_row(Text(site), *cells, end_section=True)
    return table


def _cell(summary: Summary, site: str, model: Model, classes: Group) -> Text:
    row = run_view.mean(summary, model, site, classes)
    if row is None or row.auroc is None:
        return Text("no such class" if row is not None and row.of == 0 else "not defined", "dim")
    return Text(f"{run_view.interval(row, 3)}\nover {row.defined} of {row.of}")
