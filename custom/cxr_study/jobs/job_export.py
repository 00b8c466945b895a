"""Write a job as a folder that FLARE runs: `python -m cxr_study.jobs.job_export jobs`."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from cxr_study.jobs.job import Job
from cxr_study.jobs.methods import JOBS
from cxr_study.jobs.presets import JobError


def write(job: Job, target: Path, code: str = "installed") -> None:
    """Write a job's folder: FLARE's export of its parts, or a copy of the folder that it is of.

    Args:
        job: The job.
        target: New folder.
        code: How its code gets to server and sites, one of `WAYS`; a copy brings its folder's.

    Raises:
        JobError: The folder exists, there is no such way, or it is asked for of a copy.
    """
    if target.exists():
        raise JobError(f"a job needs a new folder; {target} exists. Remove it, or give another.")
    if job.folder is not None:
        if code != "installed":
            raise JobError(f"code={code!r} needs a job by name; got the folder {job.folder.path}.")
        sites = {site: (job.app(site), job.site_settings(site)) for site in job.sites}
        job.folder.copy(target, job.settings, sites)
        return
    from cxr_study.jobs.recipe import add_sites, flare_job  # which imports FLARE

    made = flare_job(job, code)
    add_sites(made, job)
    target.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=target.parent) as temporary:
        made.export_job(temporary)
        shutil.move(Path(temporary, job.name), target)


def write_all(folder: Path) -> None:
    """Write every job's folder into `folder`, in place of what is there by that name."""
    for name in JOBS:
        shutil.rmtree(folder / name, ignore_errors=True)
        write(Job.of(name), folder / name, "marked")


if __name__ == "__main__":
    write_all(Path(sys.argv[1]))
