"""The command that reports a finished run: `surgagg report`, and what others share with it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

from rich.console import Console
from typer import Argument, Option

from cxr_study.cli.run import console, print_report, say
from cxr_study.runs.finished_run import FinishedRun, run_of

EPILOG = "Example:  surgagg report runs/run"


def report(
    folder: Annotated[
        Path, Argument(help="Of a run, of a downloaded job, or FLARE's workspace of a simulation.")
    ],
    out: Annotated[
        Path | None, Option(help="Folder for the report. Default: report, in the run's.")
    ] = None,
    site_files: Annotated[
        Path | None, Option(help="Folder of <site>.yaml, for a job that `surgagg run` did not run.")
    ] = None,
    phantom: Annotated[
        bool, Option("--phantom", help="The sites of such a job have the phantom.")
    ] = False,
) -> None:
    """Report a finished run once more, or a job that was downloaded or simulated by FLARE alone.

    Without the sites' data at hand, as in a hospital network, or where they are sites of your own,
    the report says what they measured on their own test splits.
    """
    run = run_of(folder, site_files, elsewhere=site_files is None and not phantom)
    title = f"{run.job.name}, {folder.resolve().name}"
    make_report(run, out or folder / "report", title, console)()


def make_report(run: FinishedRun, folder: Path, title: str, to: Console) -> Callable[[], None]:
    """Report a run: in full, or what its sites measured.

    Returns:
        What prints the answer, and where everything is.

    Raises:
        ResultsError: The run has not finished.
    """
    from cxr_study.reports.run import cross_site_results, evaluate_run
    from cxr_study.reports.run.console import auroc_table

    server = run.servers[-1]
    if run.job.trains:
        made = evaluate_run.report(run, folder, title=title, console=to)
        return lambda: print_report(made, to, server / "models")
    if not (server / cross_site_results.RESULTS_FILE).is_file():
        return lambda: say(f"results  {server}", to)  # of a job that measures no model
    results = cross_site_results.read(server)
    file = cross_site_results.write_csv(results, folder)
    sites = cross_site_results.evaluations(results)
    rows = [row for site in sites for row in site.test if row.labelled]
    means = [mean for site in sites for mean in site.means if mean.classes == "labelled"]

    def show() -> None:
        to.print(auroc_table(rows, means))
        say(f"table    {file}", to)
        say(f"models   {server / 'models'}", to)

    return show
