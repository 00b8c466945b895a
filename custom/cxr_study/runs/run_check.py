"""Whether a run can be made of what was asked for, before anything is made or removed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cxr_study.jobs import job_folder
from cxr_study.jobs.job_settings import JobError

if TYPE_CHECKING:
    from cxr_study.runs.run_request import StudyRun


class RunFolderError(ValueError):
    """A run's folder is in the way, or does not hold what is needed."""


def check(study: StudyRun, *, own: bool) -> None:
    """Refuse what `simulated_run.run` could not run. Quick: looks into no table and no image.

    Args:
        study: What is to be run.
        own: Whether each site is to be run alone as well.

    Raises:
        RunFolderError: The run's folder has a space in its path, or the run to continue has no
            model to start from.
        JobError: The job folder, a knob or a site's name is unusable, or there are too few sites.
        SiteFileError: A site file is unusable.
        ValueError: A knob's value is; see `knob_values`.
    """
    job_folder.check(study.job, sites=study.sites, settings=study.settings, per_site=study.per_site)
    if " " in str(study.folder.absolute()):
        raise RunFolderError(
            f"FLARE's simulator needs a folder without spaces in its path; got "
            f"{str(study.folder.absolute())!r}. Give another --out."
        )
    knobs = {**job_folder.knobs(study.job), **study.settings}
    if "num_rounds" not in knobs:
        raise JobError(
            f"job {study.job.name!r} trains nothing, so there is nothing to report; run it with "
            f"nvflare simulator {study.job} -w <folder> -c {','.join(study.sites)} "
            f"-t {len(study.sites)}"
        )
    if job_folder.encrypted(study.job):
        raise JobError(
            f"the models of job {study.job.name!r} are encrypted, so nobody here could evaluate "
            "them; submit it to servers and sites that were provisioned for homomorphic "
            "encryption (nvflare poc prepare -he), and open the model with `surgagg decrypt`."
        )
    _check_start(study, own)
    check_site_files(study.site_files, study.sites)


def check_site_files(folder: Path | None, sites: Sequence[str]) -> None:
    """Read every site's <site>.yaml; None: the embedded phantom study's, which are as they must be.

    Raises:
        SiteFileError: One is unusable.
    """
    if folder is not None:
        from cxr_study.data.sites.site_file import read_site_file

        for site in sites:
            read_site_file(folder / f"{site}.yaml")


def _check_start(study: StudyRun, own: bool) -> None:
    workspaces = [study.workspace]
    if own:
        workspaces += [study.own_workspace(site) for site in study.sites]
    for workspace in workspaces:
        start = study.start(workspace)
        if study.earlier is not None and start is not None and not start.is_file():
            raise RunFolderError(
                f"the run to continue needs {start}, which is not there: it ended before its first "
                "round, or that site was not in it. Run it anew, or without --own."
            )
