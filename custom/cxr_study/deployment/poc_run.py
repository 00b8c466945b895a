"""Run a job in a POC of its own, from its preparation to its removal."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from cxr_study.common.offered_data import demo_data
from cxr_study.common.progress import Steps
from cxr_study.deployment import deployed_run
from cxr_study.deployment.deployed_run import DeployedRun
from cxr_study.deployment.flare_session import FlareSession
from cxr_study.deployment.poc_system import PocSystem
from cxr_study.jobs import job_export
from cxr_study.jobs.job import Job
from cxr_study.jobs.presets import JobError
from cxr_study.runs import simulated_run
from cxr_study.runs.run_request import check_network, check_phantom, check_site_files
from surgical_aggregation.extras import offered_body
from surgical_aggregation.site.training import tensorflow_setup

if TYPE_CHECKING:
    from cxr_study.jobs.settings import JobSettings

POC = "poc"
"""In a run's folder: the POC's."""

_VARIABLE = "CXR_INITIAL_BODY"


@dataclass(frozen=True)
class PocRun:
    """A run of a job in a POC of its own.

    Attributes:
        job: As all that is not said here, see `RunRequest`.
        project: FLARE's project file.
        port: For the server; None: a free one.
        retries: See `deployed_run.DeployedRun`.
        keep: Whether the POC keeps running afterwards.
    """

    job: Job
    folder: Path
    project: Path
    site_files: Path | None
    port: int | None = None
    retries: int = 3
    keep: bool = False

    @property
    def system(self) -> PocSystem:
        """Its POC."""
        return PocSystem(self.folder / POC)


def check(poc: PocRun) -> None:
    """Refuse what `run` could not run, while an earlier run is still in its folder.

    Quick: reads no table and no image.

    Raises:
        ValueError: The folder, project file, port, job folder, a setting, a site file or its name,
            or the initial body is unusable, sites are too few, or the job continues one that a new
            POC cannot have.
    """
    sites, settings = poc.job.sites, poc.job.at_server
    poc.job.check()
    poc.system.check(poc.project, poc.port)
    check_site_files(poc.site_files, sites)
    if poc.site_files is None:
        check_phantom(sites)
    for name in ("continues", "model_of"):
        if value := getattr(settings, name):
            raise JobError(
                f"a new POC's server has had no jobs; got {name}={value}. Submit to the POC "
                "that has that one (surgagg deploy submit), or, in the simulator, surgagg continue."
            )
    if {"backbone", "initial_body"} <= settings.model_fields_set:  # an evaluation starts from none
        body = _initial_body(settings.initial_body)
        check_network(body, backbone=settings.backbone, hidden=settings.hidden)


def run(poc: PocRun, console: Console) -> None:
    """Run the job, and leave its job folder, results and sites' files in the run's folder.

    Whatever happens, no service is left running, unless it is to be kept and all went well. Where
    something failed, the POC's folder stays, for its logs.

    Raises:
        PocError: The POC cannot be prepared or started.
        DeployedRunError: The job failed.
        ValueError: The job, a setting, the port, a site file or what it names is unusable.
    """
    steps, system, job = Steps(console), poc.system, _sharing_cores(poc.job)
    job_export.write(job, poc.folder / "job")
    if poc.site_files is None:
        demo_data().site_files()
    elif "image_size" in job.settings:
        simulated_run.prepare(poc.site_files, job.sites, job.at_server.image_size)
    with steps.step("prepare") as said:
        system.prepare(
            poc.project,
            sites=job.sites,
            port=poc.port,
            site_files=poc.site_files,
            encrypted=job.encrypted,
        )
        said.append(str(system))
    deployed = DeployedRun(poc.folder, poc.site_files, False, poc.retries, system.workspaces)
    try:
        with steps.step("start", "over TLS, each a process of its own"):
            system.start(_named_files(job.at_server))
        with FlareSession(system.lead) as session:
            deployed_run.run(deployed, session, steps)
    except BaseException:
        with steps.step("stop"):
            system.stop()
        raise
    if not poc.keep:
        with steps.step("clean", str(system.folder)):
            system.clean()


def _initial_body(named: str) -> Path | None:
    """Checkpoint that the server starts from, on this machine; None: the package's."""
    if named == f"{{${_VARIABLE}}}":
        named = os.environ.get(_VARIABLE, "")
    if offered := offered_body(named):
        return offered
    if named and not Path(named).is_absolute():
        raise JobError(
            f"the server runs in a folder of its own and needs the initial body's absolute path; "
            f"got {named!r}. Give it by --initial-body, which is relative to here."
        )
    return Path(named) if named else None


def _named_files(settings: JobSettings) -> dict[str, str]:
    """The files that a job names, as its own POC's server takes them: from its environment."""
    named = {_VARIABLE: settings.initial_body, "CXR_MODEL": settings.model}
    return {name: file for name, file in named.items() if file != f"{{${name}}}"}


def _sharing_cores(job: Job) -> Job:
    """The job whose sites share this machine's cores, as in the simulator, to the last bit.

    TensorFlow processes that each take all cores train half as fast.
    """
    if job.settings.get("threads") != 0:
        return job
    threads = tensorflow_setup.shared_cores(len(job.sites))
    return job.with_settings({"threads": threads}, job.per_site)
