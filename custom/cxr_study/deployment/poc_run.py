"""Run a job in a POC of its own, from its preparation to its removal."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from cxr_study.common.progress import Steps
from cxr_study.deployment.deployed_run import DeployedRun
from cxr_study.deployment.flare_session import FlareSession
from cxr_study.deployment.poc_system import PocSystem
from cxr_study.jobs import job_export
from cxr_study.jobs.job import Job
from cxr_study.jobs.presets import JobError
from cxr_study.runs import simulated_run
from cxr_study.runs.run_request import RunRequest, check_network, check_sites
from surgical_aggregation.extras import offered_body
from surgical_aggregation.site.training import tensorflow_setup

if TYPE_CHECKING:
    from cxr_study.jobs.settings import JobSettings

_VARIABLE = "CXR_INITIAL_BODY"


def system(request: RunRequest) -> PocSystem:
    """The POC of a run."""
    return PocSystem(request.folder / "poc")


def check(request: RunRequest, project: Path, port: int | None = None) -> None:
    """Refuse what `run` could not run, while an earlier run is still in its folder.

    Quick: reads no table and no image.

    Raises:
        ValueError: The folder, project file, port, a site file or its name, or the initial body is
            unusable, or the job continues one that a new POC cannot have.
    """
    settings = request.job.at_server
    system(request).check(project, port)
    check_sites(request.site_files, request.job.sites)
    for name in ("continues", "model_of"):
        if value := getattr(settings, name):
            raise JobError(
                f"a new POC's server has had no jobs; got {name}={value}. Submit to the POC "
                "that has that one (surgagg deploy submit), or, in the simulator, surgagg continue."
            )
    if {"backbone", "initial_body"} <= settings.model_fields_set:  # an evaluation starts from none
        body = _initial_body(settings.initial_body)
        check_network(body, settings.backbone, settings.hidden)


def run(
    request: RunRequest,
    project: Path,
    console: Console,
    *,
    port: int | None = None,
    retries: int = 3,
    keep: bool = False,
) -> None:
    """Run the job, and leave its job folder, results and sites' files in the run's folder.

    Whatever happens, no service is left running, unless it is to be kept and all went well. Where
    something failed, the POC's folder stays, for its logs.

    Args:
        request: What is to be run.
        project: FLARE's project file.
        console: To say what is done.
        port: For the server; None: a free one.
        retries: See `deployed_run.DeployedRun`.
        keep: Whether the POC keeps running afterwards.

    Raises:
        PocError: The POC cannot be prepared or started.
        DeployedRunError: The job failed.
        ValueError: The job, a setting, the port, a site file or what it names is unusable.
    """
    steps, poc, job = Steps(console), system(request), _sharing_cores(request.job)
    files = request.site_files
    job_export.write(job, request.folder / "job")
    if files is None or "image_size" in job.settings:
        simulated_run.prepare(files, job.sites, job.at_server.image_size)
    with steps.step("prepare") as said:
        poc.prepare(project, sites=job.sites, port=port, site_files=files, encrypted=job.encrypted)
        said.append(str(poc))
    try:
        with steps.step("start", "over TLS, each a process of its own"):
            poc.start(_named_files(job.at_server))
        with FlareSession(poc.lead) as session:
            places = poc.workspaces
            DeployedRun(session, steps, request.folder, files, False, retries, places).run()
    except BaseException:
        with steps.step("stop"):
            poc.stop()
        raise
    if not keep:
        with steps.step("clean", str(poc.folder)):
            poc.clean()


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
