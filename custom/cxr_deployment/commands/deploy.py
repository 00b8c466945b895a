"""The commands `surgagg deploy`: create, submit, watch and check jobs on real FLARE systems."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from cxr_deployment.commands.systems import Kit, Retries, kit_app, poc_app
from cxr_study.cli import options
from cxr_study.cli.common import check_folder, clear_folder, console, joined, say, split
from cxr_study.cli.options import command
from cxr_study.cli.run import make_report
from cxr_study.common.progress import Steps
from cxr_study.jobs import job_export
from cxr_study.jobs.components import CODE_MODES, check_code_mode
from cxr_study.jobs.job import Job
from cxr_study.jobs.methods import JOBS
from cxr_study.jobs.presets import JobError
from cxr_study.runs.finished_run import RUN_FILE, JobFailedError, RunFolderError, finished_run
from cxr_study.runs.run_request import check_sites
from surgical_aggregation.aggregation.batch_norm_strategy import STRATEGIES
from surgical_aggregation.wire.untrusted_text import one_line

if TYPE_CHECKING:
    from cxr_deployment.deployed_run import DeployedRun
    from cxr_deployment.flare_session import FlareSession

app = typer.Typer(
    name="deploy",
    no_args_is_help=True,
    help="Run jobs on FLARE's real services: in a POC on this machine, or between hospitals.",
    epilog="Example:  surgagg deploy poc run surgical --phantom      Exit codes: 0 done, 1 the job "
    "failed, 2 wrong use, 3 done without one of the sites.",
)
app.add_typer(kit_app, name="kit")
app.add_typer(poc_app, name="poc")
Admin = Annotated[Path, Option("--kit", help="Your startup kit, of a lead or project admin.")]
ServerTimeout = Annotated[
    float,
    Option(min=0, help="Seconds to wait for a server that fails; 60 at most for the first answer."),
]
SitesTimeout = Annotated[
    float, Option(min=0, help="Seconds to wait for the job's sites before submission.")
]
OwnData = Annotated[
    Path | None,
    Option("--site-files", help="Folder of <site>.yaml, if you have the sites' data: full report."),
]
Study = Annotated[str, Option(help="FLARE study; each has its own jobs.")]
NOT_WAITED_FOR = 60.0
"""Seconds that short commands wait for the server, and all commands for the first connection."""

_CODE_MODES = "; ".join(f"{mode}: {needs}" for mode, needs in CODE_MODES.items())


@command(app)
def job(
    method: Annotated[str, Argument(help=f"One of {', '.join(JOBS)}.")],
    *,
    out: Path,
    strategy: Annotated[
        str | None,
        Option(help=f"One of {', '.join(STRATEGIES)}, or a package's. Default: the method's."),
    ] = None,
    sites: options.Sites = "nih,chexpert",
    preset: options.Preset = None,
    settings: options.Settings = None,
    code: Annotated[str, Option(help=f"{_CODE_MODES}.")] = "installed",
) -> None:
    """Write the job folder of a method, ready to submit.

    A job uses classes of this software; --code sets how they reach the server and the sites.

    Options:
        out: New folder for the job.

    Example:
        surgagg deploy job personalised --strategy fedbn --sites a,b --out my-job
    """
    check_code_mode(code)
    own = {} if strategy is None else {"strategy": strategy}
    asked = Job.asked(
        method, sites=split(sites), preset=joined(preset), given=settings or (), settings=own
    )
    job_export.write(asked, out, code)
    say(f"job      {out}")
    say(f"sites    {', '.join(asked.sites)}")
    folder, kit = shlex.quote(str(out)), "--kit <your startup kit>"
    if "check_only" in asked.settings:
        say(f"check    surgagg deploy check {folder} {kit}")
    say(f"submit   surgagg deploy submit {folder} {kit} --out <new folder>")


@command(app)
def submit(
    job: options.JobName,
    *,
    kit: Admin,
    out: Path,
    sites: options.Sites = "",
    site_files: OwnData = None,
    phantom: options.Phantom = False,
    preset: options.Preset = None,
    settings: options.Settings = None,
    retries: Retries = 3,
    server_timeout: ServerTimeout = 3600.0,
    sites_timeout: SitesTimeout = 120.0,
    study: Study = "default",
    force: options.Force = False,
) -> None:
    """Submit a job to the server of your startup kit, monitor it, and download the results.

    A job that breaks (a process was killed, the server restarted) is continued from its last
    complete round, after 1, 2, then 5 minutes; a server that does not answer is waited for. The
    first interrupt aborts the job, a second one leaves it running. Models, records and the sites'
    test metrics are downloaded.

    Options:
        out: New folder for the results.

    Example:
        surgagg deploy submit my-job --kit lead@university.org --out runs/first
    """
    asked = Job.asked(job, sites=split(sites), preset=joined(preset), given=settings or ())
    if site_files:
        check_sites(site_files, asked.sites)
    check_folder(out, force, inputs=[kit, site_files, asked.folder.path if asked.folder else None])
    from cxr_deployment import local_workspaces
    from cxr_deployment.deployed_run import DeployedRun

    with _connected(kit, server_timeout, study) as (session, steps):  # before removing a folder
        elsewhere, places = not (site_files or phantom), local_workspaces.workspaces(kit)
        clear_folder(out, force)
        deployed = DeployedRun(
            session, steps, out, site_files, elsewhere, retries, places, sites_timeout
        )
        job_export.write(asked, deployed.job)
        _to_the_end(deployed)


@command(app)
def watch(
    run: str,
    *,
    kit: Admin,
    out: Path | None = None,
    site_files: OwnData = None,
    phantom: options.Phantom = False,
    retries: Retries = 3,
    server_timeout: ServerTimeout = 3600.0,
    sites_timeout: SitesTimeout = 120.0,
    study: Study = "default",
) -> None:
    """Monitor a submitted job and download its results, as submit does; also of a finished job.

    An interrupt leaves the job running.

    Options:
        run: Folder of an earlier submit or watch, or the id of a job.
        out: Folder for the results, with a job id. Default: runs/<id>.

    Example:
        surgagg deploy watch runs/first --kit lead@university.org
        surgagg deploy watch 0043d777-243b-4872-a3ae-97753961216e --kit lead@university.org
    """
    from cxr_deployment import local_workspaces
    from cxr_deployment.deployed_run import DeployedRun

    folder = Path(run) if Path(run).is_dir() else out or Path("runs", run)
    with _connected(kit, server_timeout, study) as (session, steps):
        elsewhere, places = not (site_files or phantom), local_workspaces.workspaces(kit)
        deployed = DeployedRun(
            session, steps, folder, site_files, elsewhere, retries, places, sites_timeout,
            aborts=False, jobs=[run],
        )  # fmt: skip
        if (folder / RUN_FILE).is_file():
            deployed.read_facts()
        else:
            if folder.is_dir():
                raise RunFolderError(
                    f"{folder} is not the folder of a deployed run: it has no {RUN_FILE}. Give one "
                    "that has, or a job's id with --out and a new folder."
                )
            session.meta(run)  # raises if there is no such job
            folder.mkdir(parents=True)
            deployed.write_facts()
        _to_the_end(deployed)


@command(app)
def status(*, kit: Admin, study: Study = "default") -> None:
    """Show the state of server and sites, the jobs, and how long your startup kit is valid.

    Disk, certificate and versions of other sites are those that they reported in their last job.

    Example:
        surgagg deploy status --kit lead@university.org
    """
    from cxr_deployment import local_workspaces, system_status

    with _connected(kit, NOT_WAITED_FOR, study) as (session, _):
        for line in system_status.status_lines(session, local_workspaces.workspaces(kit)):
            say(line)


@contextmanager
def _connected(kit: Path, patience: float, study: str) -> Iterator[tuple[FlareSession, Steps]]:
    """Connect with an admin's kit to a FLARE study.

    Args:
        kit: The startup kit.
        patience: Seconds to wait for the server.
        study: Name of the study.

    Yields:
        The session, and a `Steps` that shows what is done in it.
    """
    from cxr_deployment.flare_session import FlareSession

    steps = Steps(console)
    with ExitStack() as stack:
        with steps.step("connect", kit.name):
            first = min(patience, NOT_WAITED_FOR)
            opened = FlareSession(kit, first, patience, on_wait=say, study=study)
            session = stack.enter_context(opened)
        yield session, steps


def _to_the_end(deployed: DeployedRun) -> None:
    """Run a job to its end, or watch one that is running, and write the report."""
    deployed.run()
    run = finished_run(deployed.folder)
    make_report(run, deployed.folder / "report")


@command(app)
def check(
    job: options.JobName,
    *,
    kit: Admin,
    sites: options.Sites = "",
    preset: options.Preset = None,
    settings: options.Settings = None,
    study: Study = "default",
) -> None:
    """Check whether the sites of a job can participate, without training.

    Every job starts with these checks: classes that the server permits, versions, network, disk,
    certificate, the site's files. Details that only the site may read are in its local notes.

    Example:
        surgagg deploy check my-job --kit lead@university.org
        Exit codes: 0 all sites can participate, 1 one cannot, 2 wrong use.
    """
    asked = Job.asked(job, sites=split(sites), preset=joined(preset), given=settings or ())
    if "check_only" not in asked.settings:
        raise JobError(f"job {asked.name!r} does not check its sites; submit it, it only counts.")
    asked = asked.with_settings({"check_only": True})
    from cxr_deployment import deployed_run, system_status

    connected = _connected(kit, NOT_WAITED_FOR, study)
    with TemporaryDirectory() as folder, connected as (session, steps):
        job_export.write(asked, Path(folder) / "job")
        answers, failed = deployed_run.check(Path(folder) / "job", session, Path(folder), steps)
    for one in answers:
        say(f"{one['site']:<12} {system_status.describe_answer(one)}")
    if failed or any(one["reason"] for one in answers):
        raise JobFailedError(failed or "not all sites can participate.")


@command(app)
def jobs(
    kit: Kit,
    job: Annotated[list[str] | None, Option(metavar="ID")] = None,
    older_than: Annotated[float, Option(min=0)] = 0,
    remove: Annotated[bool, Option("--remove")] = False,
) -> None:
    """List the files that jobs have left in the kit of a server or site, or remove them.

    These are checkpoints, which later jobs may continue from, a site's local notes, FLARE's folders
    and, at the server, its job store. Files of a running or waiting job are never removed.

    Options:
        job: Only this job; may be repeated.
        older_than: Only jobs without a change for this number of days.
        remove: Remove the listed files.

    Example:
        surgagg deploy jobs server --older-than 90 --remove
        Without --remove it only lists.
    """
    from cxr_deployment.local_workspaces import JobFilesError, find_job_files

    if remove and not (job or older_than):
        raise JobFilesError("--remove needs --job or --older-than, to select jobs.")
    found = find_job_files(kit, job or (), older_than)
    for one in found:
        state = f"{one.in_use}: stays" if one.in_use else "removed" if remove else ""
        facts = (one.meta.get(key, "") for key in ("name", "status", "submitter_name"))
        known = [one_line(str(fact)) for fact in facts]
        known += [one.continues and f"continues {one.continues}", state]
        size = f"{one.size / 2**20:8,.1f} MB", f"{one.age_days:6.1f} days"
        say("  ".join([one.job, *size, *filter(None, known)]))
        if remove and not one.in_use:
            one.remove()
    if not found:
        say("no files of such jobs")
