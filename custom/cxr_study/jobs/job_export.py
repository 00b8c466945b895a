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
    """Write a job's folder, ready to submit.

    A job by name is exported by FLARE; a job of a folder is copied with its new settings.

    Args:
        job: The job.
        target: New folder; parents are created.
        code: How its code reaches server and sites, one of `CODE_MODES`. A copy keeps the code of
            its folder, so there only the default, "installed", is possible.

    Raises:
        JobError: The folder exists, or `code` is unknown or not possible.
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
    """Write the folders of all `JOBS` into `folder`, and replace those that exist."""
    for name in JOBS:
        shutil.rmtree(folder / name, ignore_errors=True)
        write(Job.of(name), folder / name, "marked")


if __name__ == "__main__":
    write_all(Path(sys.argv[1]))
