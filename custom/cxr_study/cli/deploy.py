"""The commands for real FLARE systems: `surgagg deploy`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from typer import Option

from cxr_study.cli import kit, poc
from cxr_study.cli import run as cli_run
from cxr_study.cli.poc import Retries
from cxr_study.cli.report import make_report
from cxr_study.cli.run import asked, check_room, console, make_room, say, split
from cxr_study.common.progress import Steps
from cxr_study.jobs import code_shipping, job_folder, job_templates
from cxr_study.jobs.command_line_settings import parse
from cxr_study.runs.finished_run import RESULTS, finished_run, write_facts
from cxr_study.runs.run_request import check_site_files
from surgical_aggregation.aggregation.strategy import STRATEGIES

app = typer.Typer(
    no_args_is_help=True,
    help="Run jobs on FLARE's real services: in a POC on this machine, or between hospitals.",
    epilog="Example:  surgagg deploy poc run surgical --phantom      Exit codes: 0 done, 1 the job "
    "failed, 2 wrong use.",
)
app.add_typer(kit.app, name="kit")
app.add_typer(poc.app, name="poc")

_WAYS = "; ".join(f"{way}: {needs}" for way, needs in code_shipping.WAYS.items())


@app.command(
    epilog="Example:  surgagg deploy job personalised --strategy fedbn --sites a,b --out my-job"
)
def job(
    method: Annotated[str, typer.Argument(help=f"One of {', '.join(job_templates.JOBS)}.")],
    out: Annotated[Path, Option(help="New folder for the job.")],
    strategy: Annotated[
        str | None, Option(help=f"One of {', '.join(STRATEGIES)}. Default: the method's own.")
    ] = None,
    sites: cli_run.Sites = "nih,chexpert",
    preset: cli_run.Preset = None,
    settings: cli_run.Settings = None,
    code: Annotated[str, Option(help=f"{_WAYS}.")] = "installed",
) -> None:
    """Write the job folder of a method, ready to submit.

    It names classes of this software, and --code says how they get to the server and the sites.
    """
    for_all, per_site = parse(settings or [])
    job_templates.configure(
        method,
        out,
        sites=split(sites),
        strategy=strategy,
        preset=preset,
        settings=for_all,
        per_site=per_site,
        code=code,
    )
    say(f"job      {out}")
    say(f"submit   nvflare job submit -j {out}")


@app.command(
    epilog="Example:  surgagg deploy submit my-job --kit lead@university.org --out runs/first"
)
def submit(
    job: cli_run.Job,
    kit: Annotated[Path, Option(help="Your startup kit, that of a lead or project admin.")],
    out: Annotated[Path, Option(help="New folder for everything the run makes.")],
    sites: cli_run.Sites = "",
    site_files: Annotated[
        Path | None,
        Option(help="Folder of <site>.yaml, if you have the sites' data: a full report."),
    ] = None,
    preset: cli_run.Preset = None,
    settings: cli_run.Settings = None,
    retries: Retries = 3,
    server_timeout: Annotated[
        float, Option(min=0, help="Seconds to wait for a server that has gone away.")
    ] = 3600.0,
    force: cli_run.Force = False,
) -> None:
    """Submit a job to the server that your startup kit names, and see it to its end.

    A job that breaks (a process was killed, the server restarted) is continued from its last whole
    round, and a server that is gone is waited for. An interrupt aborts it; another one leaves it to
    itself. Models, records and what the sites measured on their test splits are downloaded.
    """
    names, for_all, per_site = asked(job, sites, preset, settings)
    check_site_files(site_files, names)
    check_room(out, force)
    from cxr_study.deployment import deployed_run
    from cxr_study.deployment.flare_session import FlareSession

    def say_waiting(seconds: float) -> None:
        console.print(f"the server does not answer; waiting for up to {seconds:.0f} s")

    session = FlareSession(kit, patience=server_timeout, on_wait=say_waiting)
    with session:  # a kit that does not work shows before anything is removed
        make_room(out, force)
        copy = out / "job"
        job_folder.copy(job, copy, sites=names, settings=for_all, per_site=per_site)
        code_shipping.unmark(copy)
        deployed = deployed_run.DeployedRun(copy, out / RESULTS, retries)
        servers = deployed_run.run(deployed, session, Steps(console))
    jobs = [server.parent.name for server in servers]
    write_facts(out, site_files, jobs, elsewhere=site_files is None)
    make_report(finished_run(out), out / "report", job.name, console)()
