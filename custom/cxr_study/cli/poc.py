"""The commands that run jobs in FLARE's POC, on this machine: `surgagg deploy poc`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from cxr_study.cli import run as cli_run
from cxr_study.cli.report import make_report
from cxr_study.cli.run import check_data, check_room, console, make_room, say, split
from cxr_study.common.progress import Steps
from cxr_study.deployment.poc_project import PROJECT
from cxr_study.jobs import job_folder
from cxr_study.runs.finished_run import downloaded_run, finished_run

if TYPE_CHECKING:
    from cxr_study.deployment.flare_session import FlareSession
    from cxr_study.deployment.poc_system import PocSystem

app = typer.Typer(
    no_args_is_help=True,
    help="Run jobs on real FLARE services of this machine, in one command or step by step.",
    epilog="Example:  surgagg deploy poc run surgical --phantom      Exit codes: 0 done, 1 the job "
    "failed, 2 wrong use, 3 done without one of the sites.",
)

Folder = Annotated[Path, Option(help="The POC's folder; everything of it is in there.")]
Project = Annotated[Path, Option(help="FLARE's project file: who takes part.")]
Port = Annotated[int | None, Option(min=1, max=65535, help="Of the server. Default: a free one.")]
JobId = Annotated[str, Argument(help="Id of a submitted job.")]
Retries = Annotated[
    int, Option(min=0, help="How often a job that breaks is continued where it broke.")
]
HERE = Path("runs/poc")


@app.command(epilog="Example:  surgagg deploy poc run surgical --phantom --set num_rounds=6")
def run(
    job: cli_run.Job,
    out: Annotated[Path, Option(help="New folder for everything.")] = Path("runs/poc-run"),
    sites: cli_run.Sites = "",
    site_files: cli_run.SiteFiles = None,
    phantom: cli_run.Phantom = False,
    initial_body: cli_run.InitialBody = None,
    preset: cli_run.Preset = None,
    settings: cli_run.Settings = None,
    project: Project = PROJECT,
    port: Port = None,
    retries: Retries = 3,
    keep: Annotated[bool, Option("--keep", help="Leave the POC running.")] = False,
    force: cli_run.Force = False,
) -> None:
    """Prepare a POC, start it, run a job in it to its end, report, stop, clean.

    Server and sites are processes of their own that talk over TLS, as in a hospital network. A job
    that breaks is continued from its last whole round. Nothing is left running, and your own FLARE
    configuration is not touched.
    """
    check_data(site_files, phantom)
    body = {} if initial_body is None else {"initial_body": str(initial_body.absolute())}
    names, for_all, per_site = cli_run.asked(job, sites, preset, settings, **body)
    check_room(out, force)
    from cxr_study.deployment import poc_run
    from cxr_study.runs.run_request import check_body

    poc = poc_run.PocRun(
        job, out, names, project, site_files, for_all, per_site, port, retries, keep
    )
    poc_run.check(poc)
    check_body(site_files, initial_body)
    poc.system.stop()  # one that an earlier run left
    make_room(out, force)
    answers: list[Callable[[], None]] = []

    def report() -> None:
        title = f"{job.name} in POC, on {', '.join(names)}"
        answers.append(make_report(finished_run(out), out / "report", title, console))

    poc_run.run(poc, console, report)
    for answer in answers:
        answer()


@app.command(epilog="Example:  surgagg deploy poc prepare --sites a,b --site-files sites")
def prepare(
    folder: Folder = HERE,
    project: Project = PROJECT,
    sites: Annotated[str, Option(help="Names, by comma. Default: the project's.")] = "",
    site_files: cli_run.SiteFiles = None,
    phantom: cli_run.Phantom = False,
    port: Port = None,
    encrypted: Annotated[
        bool, Option("--encrypted", help="With keys for homomorphic encryption.")
    ] = False,
) -> None:
    """Make certificates and startup kits."""
    check_data(site_files, phantom)
    system = _system(folder)
    with Steps(console).step("prepare") as said:
        system.prepare(
            project,
            sites=split(sites) or None,
            port=port,
            site_files=site_files,
            encrypted=encrypted,
        )
        said.append(f"server and {', '.join(system.project.sites)}, port {system.project.port}")
    for role, kit in {"lead": system.lead, "server": system.server}.items():
        say(f"{role:<10}{kit}")


@app.command(epilog="Example:  surgagg deploy poc start")
def start(folder: Folder = HERE) -> None:
    """Start server and sites, and wait until all are connected."""
    with Steps(console).step("start") as said:
        system = _system(folder)
        system.start()
        said.append(f"server and {', '.join(system.project.sites)}")


@app.command(epilog="Example:  surgagg deploy poc submit surgical")
def submit(job: cli_run.Job, folder: Folder = HERE) -> None:
    """Submit a job as it is, and say its id."""
    with _lead(folder) as session:
        say(session.submit(job))


@app.command(epilog="Example:  surgagg deploy poc watch 0043d777-243b-4872-a3ae-97753961216e")
def watch(job_id: JobId, folder: Folder = HERE) -> None:
    """Wait for the end of a job, showing its rounds. An interrupt leaves it running."""
    from cxr_study.deployment import deployed_run

    workspaces = _system(folder).workspaces
    with _lead(folder) as session:
        deployed_run.attend(session, job_id, folder / "downloads", workspaces, Steps(console))


@app.command(epilog="Example:  surgagg deploy poc download 0043d777-243b-4872-a3ae-97753961216e")
def download(
    job_id: JobId,
    folder: Folder = HERE,
    out: Annotated[Path, Option(help="Folder for it.")] = Path("runs/downloads"),
) -> None:
    """Download what a finished job left at the server."""
    with _lead(folder) as session:
        say(str(session.download(job_id, out)))


@app.command("report", epilog="Example:  surgagg deploy poc report runs/downloads/0043d777...")
def report_(
    downloaded: Annotated[Path, Argument(help="Folder of a downloaded job.")],
    folder: Folder = HERE,
    out: Annotated[
        Path | None, Option(help="Folder for the report. Default: report, in the job's.")
    ] = None,
) -> None:
    """Report a job that was downloaded, with the data and the local models of the POC's sites."""
    system = _system(folder)
    states = {
        site: system.kit(site) / "checkpoints" / downloaded.name for site in system.project.sites
    }
    run = downloaded_run(downloaded, system.site_files, states=states)
    title = f"{job_folder.name(run.job)}, {downloaded.resolve().name}"
    make_report(run, out or downloaded / "report", title, console)()


@app.command(epilog="Example:  surgagg deploy poc stop")
def stop(folder: Folder = HERE) -> None:
    """End all its processes, whatever state they are in; a running job is aborted."""
    system = _system(folder)
    if not system.running:
        _ = system.project  # a folder that was misspelt must not look like success
    with Steps(console).step("stop"):
        system.stop()


@app.command(epilog="Example:  surgagg deploy poc clean")
def clean(folder: Folder = HERE) -> None:
    """Stop it and remove its folder."""
    with Steps(console).step("clean", str(folder)):
        _system(folder).clean()


def _system(folder: Path) -> PocSystem:
    from cxr_study.deployment.poc_system import PocSystem  # imports FLARE

    return PocSystem(folder)


def _lead(folder: Path) -> FlareSession:
    from cxr_study.deployment.flare_session import FlareSession

    return FlareSession(_system(folder).lead)
