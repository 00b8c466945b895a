"""The command that runs a job on a provisioned FLARE system: `surgagg submit`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cxr_study.cli.report import make_report
from cxr_study.cli.run import (
    Force,
    Job,
    Preset,
    Settings,
    Sites,
    check_room,
    console,
    make_room,
    split,
)
from cxr_study.common.progress import Steps
from cxr_study.jobs import job_folder, presets, settings
from cxr_study.runs.finished_run import RESULTS, finished_run, write_facts
from cxr_study.runs.run_check import check_site_files

EPILOG = "Example:  surgagg submit jobs/surgical --kit lead@university.org --out runs/first"

Retries = Annotated[
    int, typer.Option(min=0, help="How often a job that breaks is continued where it broke.")
]


def submit(
    job: Job,
    kit: Annotated[Path, typer.Option(help="Your startup kit, that of a lead or project admin.")],
    out: Annotated[Path, typer.Option(help="New folder for everything the run makes.")],
    sites: Sites = "",
    site_files: Annotated[
        Path | None,
        typer.Option(help="Folder of <site>.yaml, if you have the sites' data: a full report."),
    ] = None,
    preset: Preset = None,
    knobs: Settings = None,
    retries: Retries = 3,
    patience: Annotated[
        float, typer.Option(min=0, help="Seconds to wait for a server that is gone meanwhile.")
    ] = 3600.0,
    force: Force = False,
) -> None:
    """Submit a job to the server that your startup kit names, and see it to its end.

    A job that breaks (a process was killed, the server restarted) is continued from its last whole
    round, and a server that is gone is waited for. An interrupt aborts it; another one leaves it to
    itself. What comes home are models, records, and what the sites measured on their test splits.
    """
    names = split(sites) or job_folder.sites(job)
    for_all, per_site = presets.apply(preset, *settings.parse(knobs or []), names)
    job_folder.check(job, sites=names, settings=for_all, per_site=per_site)
    check_site_files(site_files, names)
    check_room(out, force)
    from cxr_study.deployment import deployed_run
    from cxr_study.deployment.flare_session import FlareSession

    session = FlareSession(kit, patience=patience, on_wait=_say_waiting)
    with session:  # a kit that does not work shows before anything is removed
        make_room(out, force)
        copy = out / "job"
        job_folder.copy(job, copy, sites=names, settings=for_all, per_site=per_site)
        deployed = deployed_run.DeployedRun(copy, out / RESULTS, retries)
        servers = deployed_run.run(deployed, session, Steps(console))
    jobs = [server.parent.name for server in servers]
    write_facts(out, site_files, jobs, elsewhere=site_files is None)
    make_report(finished_run(out), out / "report", job.name, console)()


def _say_waiting(seconds: float) -> None:
    console.print(f"the server does not answer; waiting for up to {seconds:.0f} s")
