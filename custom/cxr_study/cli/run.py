"""The commands `surgagg demo`, `run` and `continue` (in FLARE's simulator), and `report`."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.markup import escape
from typer import Option

from cxr_study.cli import options
from cxr_study.cli.common import check_data, check_folder, clear_folder, console, joined, say, split
from cxr_study.cli.options import command
from cxr_study.jobs.job import Job
from cxr_study.jobs.presets import parse
from cxr_study.runs.finished_run import (
    FinishedRun,
    InterruptedRunError,
    JobFailedError,
    RunFolderError,
    checkpoint_folder,
    finished_run,
    read_facts,
    run_of,
)
from cxr_study.runs.run_request import RunRequest, check

app = typer.Typer()

ABSENT = 3
"""Exit code of a finished run in which a site of the job contributed to no round."""

DEMO_RECIPE = {"num_rounds": 6, "batch_size": 16, "learning_rate": 2e-3}
"""Settings of the demo: few rounds, with more and larger steps than the defaults."""


def _list_settings(wanted: bool) -> None:
    if not wanted:
        return
    from rich.table import Table

    from cxr_study.jobs.settings import table  # takes a quarter of a second

    settings = Table("at", "setting", "default", "needs", "description", box=None)
    for row in table():
        settings.add_row(*map(escape, row))
    console.print(settings)
    raise typer.Exit


@command(app)
def demo(
    out: options.Out = Path("runs/demo"),
    job: Annotated[Path, Option(help=options.JOB)] = Path("surgical"),
    settings: options.Settings = None,
    force: options.Force = False,
) -> None:
    """Run a job on the phantom, and write a report.

    Two sites (NIH-like, 14 classes; CheXpert-like, 13; union 20) in FLARE's simulator, with the
    preset "recommended"; for comparison, each site alone with the same settings.

    Example:
        surgagg demo --out runs/demo --force
    """
    ours = job.name == "surgical"
    given = [f"{name}={value}" for name, value in DEMO_RECIPE.items() if ours]
    preset = "recommended" if ours else None
    asked = Job.asked(job, preset=preset, given=[*given, *(settings or ())])
    request = RunRequest(asked, out, None, None, local_models=True, preset=preset)
    run_and_report(request, force)


@command(app)
def run(
    job: options.JobName,
    out: options.Out = Path("runs/run"),
    sites: options.Sites = "",
    site_files: options.SiteFiles = None,
    phantom: options.Phantom = False,
    initial_body: options.InitialBody = None,
    preset: options.Preset = None,
    settings: options.Settings = None,
    local_models: options.LocalModels = False,
    published: bool = False,
    force: options.Force = False,
    _: Annotated[bool, Option("--settings", callback=_list_settings, is_eager=True)] = False,
) -> None:
    """Run a job in FLARE's simulator, and write a report.

    Options:
        published: Also run the method as published, without extensions to the papers.
        _: List all settings.

    Example:
        surgagg run surgical --site-files sites --sites a,b --set num_rounds=20
        surgagg run surgical --phantom
    """
    check_data(site_files, phantom)
    asked = Job.asked(job, sites=split(sites), preset=joined(preset), given=settings or ())
    request = RunRequest(asked, out, site_files, initial_body, preset=joined(preset))
    request = replace(request, local_models=local_models, published=published)
    run_and_report(request, force)


@command(app, "continue")
def continue_(
    earlier: Path,
    out: options.Out = Path("runs/continued"),
    sites: str = "",
    site_files: Path | None = None,
    start: Annotated[Literal["last", "best"], Option("--from")] = "last",
    settings: options.Settings = None,
    local_models: options.LocalModels = False,
    force: options.Force = False,
) -> None:
    """Continue an earlier run, and write a report.

    Job and settings are those of the earlier run. After an interruption the missing rounds are run,
    with the result of an uninterrupted run; after a finished run, the same number of rounds is run
    again.

    Options:
        earlier: Folder of an earlier run.
        sites: Names, separated by commas: more, fewer or others. Default: the same.
        site_files: Folder of <site>.yaml. Default: the earlier run's data.
        start: Model to start from; best: with new optimizers.

    Example:
        surgagg continue runs/run --out runs/more --set num_rounds=6
    """
    from cxr_study.jobs.settings import defaults

    facts = read_facts(earlier)
    if out.resolve() in (earlier.resolve(), *earlier.resolve().parents):
        raise RunFolderError(
            f"a continued run needs a separate folder; {out} holds the run to continue. Give "
            "another --out."
        )
    for_all, per_site = parse(settings or [])
    job, default = Job.from_folder(earlier / "job"), defaults("surgical")
    # With its own values the job would not start from the earlier model.
    reset = {name: default[name] for name in ("initial_body", "continues") if name in job.settings}
    own = {**reset, **_missing_rounds(earlier, start), **for_all}
    job = job.with_settings(own, per_site, sites=split(sites) or None)
    data = site_files or facts.site_files
    request = RunRequest(job, out, data, None, earlier, start, local_models, preset=facts.preset)
    check(request)
    say(f"{job.at_server.num_rounds} rounds from {request.start(request.workspace)}")
    for name in sorted(set(job.sites) - request.states(request.workspace, job.sites).keys()):
        say(f"{name} has no state of the earlier run to restore: its optimizer starts afresh")
    run_and_report(request, force)


def _missing_rounds(earlier: Path, start: str) -> dict[str, object]:
    """Setting for the rounds that an interrupted run lacks; empty if it was not interrupted."""
    last = checkpoint_folder(earlier / "workspace") / "last.npz"
    if start == "best" or not last.is_file():
        return {}
    from surgical_aggregation.checkpoints.checkpoint import load

    missing = load(last).manifest.missing_rounds
    return {"num_rounds": missing} if missing else {}


def run_and_report(request: RunRequest, force: bool) -> None:
    """Run a job in the simulator, write its report, and print the results and their places.

    Args:
        request: The job, its data and its folder.
        force: Whether an earlier run's folder may be replaced.

    Raises:
        ValueError: The request, its data or the folder is not usable; nothing has been run then.
        JobFailedError: The job failed; its folder has been renamed.
        InterruptedRunError: It was interrupted; the message names the command that continues it.
        typer.Exit: A site contributed to no round, see `ABSENT`.
    """
    check(request)  # before an earlier run is removed for this one
    job = request.job
    job_folder = None if job.folder is None else job.folder.path
    inputs = [request.initial_body, request.site_files, job_folder]
    check_folder(request.folder, force, inputs=inputs)
    from cxr_study.runs import simulated_run

    import_module("cxr_study.reports.run.evaluate_run")  # misses packages now, not after training
    simulated_run.prepare(request.site_files, job.sites, job.at_server.image_size)
    clear_folder(request.folder, force)
    try:
        simulated_run.run(request, console=console)
    except KeyboardInterrupt:
        raise InterruptedRunError(simulated_run.resume_instructions(request)) from None
    except JobFailedError as error:
        raise simulated_run.move_failed_run_aside(request, error) from None
    models = checkpoint_folder(request.workspace)
    make_report(finished_run(request.folder), request.folder / "report", models)


@command(app)
def report(
    folder: Path,
    out: Path | None = None,
    site_files: Path | None = None,
    phantom: Annotated[bool, Option("--phantom")] = False,
) -> None:
    """Write the report of a finished run, of a downloaded job, or of a simulation by FLARE itself.

    Without the sites' data, as in a hospital network, and with your own Site, the report has the
    metrics that the sites measured on their test splits.

    Options:
        folder: Folder of a run, of a downloaded job, or FLARE's workspace of a simulation.
        out: Folder for the report. Default: report, in the run's folder.
        site_files: Folder of <site>.yaml, for a job that was not started by `surgagg run`.
        phantom: The sites of such a job use the phantom.

    Example:
        surgagg report runs/run
    """
    run = run_of(folder, site_files, elsewhere=site_files is None and not phantom)
    make_report(run, out or folder / "report")


def make_report(run: FinishedRun, folder: Path, models: Path | None = None) -> None:
    """Write the report of a run, print its summary, and list the files.

    Args:
        run: The run to report: a training or an evaluation.
        folder: Folder for the report.
        models: Folder of the models, to print. Default: that in the server's folder.

    Raises:
        ResultsError: The run has not finished.
        typer.Exit: A site of the job contributed to no round, see `ABSENT`.
    """
    from cxr_study.reports.run import cross_site_results, evaluate_run, run_view
    from cxr_study.reports.run.console import auroc_table, print_summary
    from cxr_study.runs import job_results

    server = run.servers[-1]
    models = models or server / "models"
    if run.job.trains:
        made = evaluate_run.report(run, folder, console)
        print_summary(made.summary, console)
        page = made.page
        written = [("report", page), ("summary", page.with_name("summary.json"))]
        written += [("table", made.table)] if made.table else []
        written += [("card", card) for card in made.cards]
        for what, file in [*written, ("models", models)]:
            say(f"{what:<8} {file}")
        if run_view.absent(made.summary):
            raise typer.Exit(ABSENT)
    elif (server / job_results.CROSS_SITE).is_file():
        results = cross_site_results.read(server)
        table = cross_site_results.write_csv(results, folder)
        sites = cross_site_results.evaluations(results)
        rows = [row for site in sites for row in site.test if row.labelled]
        means = [mean for site in sites for mean in site.means if mean.classes == "labelled"]
        console.print(auroc_table(rows, means))
        say(f"table    {table}")
        say(f"models   {models}")
    else:  # a job that evaluates no model
        say(f"results  {server}")
