"""Run a job in a new POC: prepare it, start it, run the job, remove it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from cxr_deployment.deployed_run import DeployedRun
from cxr_deployment.flare_session import FlareSession
from cxr_deployment.poc_system import PocSystem
from cxr_study.common.progress import Steps
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
    """The POC of a run, in the folder "poc" of the run's folder."""
    return PocSystem(request.folder / "poc")


def check(request: RunRequest, project: Path, port: int | None = None) -> None:
    """Check what `run` needs, without changing anything; an earlier run may still be in the folder.

    Quick: reads no label table and no image.

    Args:
        request: The run.
        project: FLARE's project file.
        port: For the server. Default None: a free one.

    Raises:
        ValueError: The folder, project file, port, a site file or its name, or the initial body is
            not usable, or the job refers to an earlier job, which a new POC does not have.
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
    """Run the job, and write its job folder, results and the sites' files to the run's folder.

    All services are stopped at the end and after any error, except with `keep` after success. After
    an error the POC's folder is kept, for its logs.

    Args:
        request: The run.
        project: FLARE's project file.
        console: Where progress is reported.
        port: For the server. Default None: a free one.
        retries: How often a failed job is continued, see `deployed_run.DeployedRun`. Default 3.
        keep: Whether the POC keeps running after success. Default False.

    Raises:
        PocError: The POC cannot be prepared or started.
        DeployedRunError: The job failed.
        ValueError: The job, a setting, the port, a site file or a file that it names is not usable.
    """
    steps, poc, job = Steps(console), system(request), _sharing_cores(request.job)
    files = request.site_files
    job_export.write(job, request.folder / "job")
    if files is None or "image_size" in job.settings:
        simulated_run.prepare(files, job.sites, job.at_server.image_size)
    with steps.step("prepare") as details:
        poc.prepare(project, sites=job.sites, port=port, site_files=files, encrypted=job.encrypted)
        details.append(str(poc))
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
    """Resolve the setting `initial_body` to a checkpoint on this machine.

    Args:
        named: A path, the name of a body that a package offers, or a reference to the environment
            variable.

    Returns:
        The checkpoint; None if the setting is empty: the server starts from the phantom's.

    Raises:
        JobError: The path is relative.
    """
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
    """Environment variables of the services for the files that the job's settings name."""
    named = {_VARIABLE: settings.initial_body, "CXR_MODEL": settings.model}
    return {name: file for name, file in named.items() if file != f"{{${name}}}"}


def _sharing_cores(job: Job) -> Job:
    """Set the job's threads so that the sites share this machine's cores.

    TensorFlow processes that each use all cores train half as fast. The number is that of the
    simulator, so both give the same model, bit for bit.
    """
    if job.settings.get("threads") != 0:
        return job
    threads = tensorflow_setup.shared_cores(len(job.sites))
    return job.with_settings({"threads": threads}, job.per_site)
