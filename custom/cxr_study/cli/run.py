"""The commands that run a job in FLARE's simulator, and what other commands share with them."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.console import Console
from rich.markup import escape
from typer import Argument, Option

from cxr_study.common import offered_data
from cxr_study.common.offered_data import DRAWINGS
from cxr_study.jobs.job import Job
from cxr_study.jobs.methods import JOBS, METHODS
from cxr_study.jobs.presets import PRESETS, parse
from cxr_study.runs.finished_run import (
    InterruptedRunError,
    JobFailedError,
    RunFolderError,
    checkpoint_folder,
    finished_run,
    read_facts,
)
from cxr_study.runs.run_request import RunRequest, check
from surgical_aggregation.extras import offered_body

if TYPE_CHECKING:
    from cxr_study.reports.run.evaluate_run import Report

console = Console()

MARK = "job/meta.json"
"""In a run's folder: tells it from any other."""

ABSENT = 3
"""Exit code of a run that is done, but to which a site of its job has contributed nothing."""

DEMO_RECIPE = {
    "num_rounds": 6, "batch_size": 16, "learning_rate": 2e-3, "average_decay": 0.0,
    "refit_model": "last", "server_optimizer": "fedavgm", "server_momentum": 0.5,
}  # fmt: skip
"""Of the demo: few rounds, of more and larger steps than the jobs' own, too few to average."""

DEMO_EPILOG = "Example:  surgagg demo --out runs/demo --force"
RUN_EPILOG = (
    "Example:  surgagg run surgical --site-files sites --sites a,b --set num_rounds=20      "
    "surgagg run surgical --phantom"
)
CONTINUE_EPILOG = "Example:  surgagg continue runs/run --out runs/more --set num_rounds=6"


_JOB = f"{', '.join(JOBS)}, or a job folder."


def _list_settings(wanted: bool) -> None:
    if not wanted:
        return
    from rich.table import Table

    from cxr_study.jobs.settings import table  # takes a quarter of a second

    listed = Table("at", "setting", "default", "needs", "what it is", box=None)
    for row in table():
        listed.add_row(*map(escape, row))
    console.print(listed)
    raise typer.Exit


JobName = Annotated[Path, Argument(help=_JOB)]
Out = Annotated[Path, Option(help="New folder for everything the run makes.")]
Settings = Annotated[
    list[str] | None,
    Option(
        "--set",
        metavar="[SITE:]NAME=VALUE",
        help="A setting of the job, or of one site of it; may be repeated. surgagg run --settings "
        "lists them.",
    ),
]
Force = Annotated[bool, Option(help="Remove --out first if it is a run's folder.")]
LocalModels = Annotated[bool, Option(help="Also train each site alone, for comparison.")]
Published = Annotated[
    bool, Option(help="Also run the method as published, without what goes beyond the papers.")
]
Preset = Annotated[
    str | None, Option(help=f"Settings that go together: {', '.join(PRESETS)}. --set wins.")
]
Sites = Annotated[str, Option(help="Names, by comma. Default: the job's.")]
Phantom = Annotated[bool, Option("--phantom", help="Drawn images, in place of --site-files.")]


def _body(named: Path | None) -> Path | None:
    if named == Path(DRAWINGS):
        return offered_data.drawings()
    return named and (offered_body(str(named)) or named)


def _folder(named: Path | None) -> Path | None:
    return named and offered_data.site_files(named)


SiteFiles = Annotated[
    Path | None, Option(help="Folder of <site>.yaml: real data.", callback=_folder)
]
InitialBody = Annotated[
    Path | None,
    Option(
        help=f"Checkpoint to start from, or '{DRAWINGS}': pre-trained on drawings, the default of "
        "--phantom alone.",
        callback=_body,
    ),
]


class DataError(ValueError):
    """A command is not told whose images to train on."""


def demo(
    out: Out = Path("runs/demo"),
    job: Annotated[Path, Option(help=_JOB)] = Path("surgical"),
    settings: Settings = None,
    force: Force = False,
) -> None:
    """Run a job on the phantom, and write a report.

    Two sites (NIH-like, 14 classes; CheXpert-like, 13; union 20) in FLARE's simulator, with the
    preset "recommended", changed for few rounds: momentum at the server, and columns fitted anew to
    the last body. Beside it, with the same recipe, the method as published and each site alone.
    """
    method = METHODS.get(job.name)
    title = f"{method.title if method else job.name} on the phantom study"
    both = job.name == "surgical"
    recipe = [f"{name}={value}" for name, value in DEMO_RECIPE.items() if both]
    request = _requested(
        job, out, [*recipe, *(settings or [])], preset="recommended" if both else None
    )
    run_and_report(replace(request, local_models=True, published=both), title, force)


def run(
    job: JobName,
    out: Out = Path("runs/run"),
    sites: Sites = "",
    site_files: SiteFiles = None,
    phantom: Phantom = False,
    initial_body: InitialBody = None,
    preset: Preset = None,
    settings: Settings = None,
    local_models: LocalModels = False,
    published: Published = False,
    force: Force = False,
    _: Annotated[
        bool,
        Option("--settings", callback=_list_settings, is_eager=True, help="List all settings."),
    ] = False,
) -> None:
    """Run a job in FLARE's simulator, and write a report."""
    check_data(site_files, phantom)
    request = _requested(job, out, settings, sites, site_files, initial_body, preset)
    request = replace(request, local_models=local_models, published=published)
    run_and_report(request, f"{request.job.name} on {', '.join(request.job.sites)}", force)


def continue_(
    earlier: Annotated[Path, Argument(help="Folder of an earlier run.")],
    out: Out = Path("runs/continued"),
    sites: Annotated[
        str, Option(help="Names, by comma: more, fewer or others. Default: the same.")
    ] = "",
    site_files: Annotated[
        Path | None, Option(help="Folder of <site>.yaml. Default: the earlier run's data.")
    ] = None,
    start: Annotated[
        Literal["last", "best"],
        Option("--from", help="Model to start from; best: with new optimizers."),
    ] = "last",
    settings: Settings = None,
    local_models: LocalModels = False,
    force: Force = False,
) -> None:
    """Go on where an earlier run ended, and write a report.

    With the job and the settings that it had. After an interruption the missing rounds are made,
    and the result is that of a run which was never interrupted; after a run that ended, as many
    rounds again are made.
    """
    facts = read_facts(earlier)
    if out.resolve() in (earlier.resolve(), *earlier.resolve().parents):
        raise RunFolderError(
            f"a continued run needs a folder of its own; {out} holds the run to continue. Give "
            "another --out."
        )
    for_all, per_site = parse(settings or [])
    job = Job.from_folder(earlier / "job").with_settings(
        {**_missing_rounds(earlier, start), **for_all}, per_site, sites=split(sites) or None
    )
    request = RunRequest(
        job,
        out,
        site_files or facts.site_files,
        None,
        earlier,
        start,
        local_models,
        preset=facts.preset,
    )
    check(request)
    say(f"{job.at_server.num_rounds} rounds from {request.start(request.workspace)}")
    for name in sorted(set(job.sites) - request.states(request.workspace, job.sites).keys()):
        say(f"{name} has no state of the earlier run to restore: its optimizer starts afresh")
    run_and_report(request, f"{earlier.name}, continued on {', '.join(job.sites)}", force)


def _requested(
    name: Path,
    out: Path,
    given: list[str] | None,
    sites: str = "",
    site_files: Path | None = None,
    initial_body: Path | None = None,
    preset: str | None = None,
) -> RunRequest:
    job = Job.asked(name, sites=split(sites), preset=preset, given=given or ())
    return RunRequest(job, out, site_files, initial_body, preset=preset)


def _missing_rounds(earlier: Path, start: str) -> dict[str, object]:
    """The setting that makes up for an interruption; nothing where there was none."""
    last = checkpoint_folder(earlier / "workspace") / "last.npz"
    if start == "best" or not last.is_file():
        return {}
    from surgical_aggregation.checkpoints.checkpoint import load

    missing = load(last).manifest.missing_rounds
    return {"num_rounds": missing} if missing else {}


def check_data(
    given: object,
    phantom: bool,
    needed: str = "training needs --site-files <folder of <site>.yaml>",
) -> None:
    """Refuse nobody's data, or two kinds of them."""
    if bool(given) == phantom:
        got = "both" if phantom else "neither"
        raise DataError(f"{needed} for real data, or --phantom for drawn images; got {got}.")


def split(sites: str) -> tuple[str, ...]:
    """Names from a text with commas; of an empty one none."""
    return tuple(name.strip() for name in sites.split(",")) if sites else ()


def run_and_report(request: RunRequest, title: str, force: bool) -> None:
    """Run a job, print its result, and say where everything is."""
    check(request)  # before an earlier run is removed for this one
    check_room(request.folder, force)
    from cxr_study.reports.run.evaluate_run import report
    from cxr_study.runs import simulated_run

    job = request.job
    simulated_run.prepare(request.site_files, job.sites, job.at_server.image_size)
    make_room(request.folder, force)
    try:
        simulated_run.run(request, console=console)
    except KeyboardInterrupt:
        raise InterruptedRunError(simulated_run.how_to_go_on(request)) from None
    except JobFailedError as error:
        raise simulated_run.moved_aside(request, error) from None
    finished = finished_run(request.folder)
    made = report(finished, request.folder / "report", title=title, console=console)
    print_report(made, console, checkpoint_folder(request.workspace))


def print_report(made: Report, to: Console, models: Path) -> None:
    """Print what a report says, where it and the models are.

    Ends with exit code `ABSENT` where a site of the job has contributed to no round.
    """
    from cxr_study.reports.run import run_view
    from cxr_study.reports.run.console import print_summary

    print_summary(made.summary, to)
    say(f"report   {made.page}", to)
    say(f"summary  {made.page.with_name('summary.json')}", to)
    if made.table is not None:
        say(f"table    {made.table}", to)
    for card in made.cards:
        say(f"card     {card}", to)
    say(f"models   {models}", to)
    if run_view.absent(made.summary):
        raise typer.Exit(ABSENT)


def make_room(folder: Path, force: bool, mark: str = MARK) -> None:
    """Remove a folder of an earlier run (see `mark`) where that is wanted, or see `check_room`."""
    check_room(folder, force, mark)
    if folder.exists():
        shutil.rmtree(folder)


def check_room(folder: Path, force: bool, mark: str = MARK) -> None:
    """Refuse a folder that exists, unless it is a run's and is to be removed."""
    if not folder.exists():
        return
    if not force:
        raise RunFolderError(
            f"a run needs a new folder; {folder} exists. Give another --out, or --force."
        )
    if not (folder / mark).is_file():
        raise RunFolderError(
            f"only what an earlier run made is removed; {folder} holds no {mark}. Remove it "
            "yourself, or give another --out."
        )


def say(text: str, to: Console = console) -> None:
    """Print a line as it is: nothing in a path or a message is markup, or wrapped."""
    to.print(text, markup=False, highlight=False, soft_wrap=True)
