"""Paths of global models on the server's disk, and the model that a job starts from."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nvflare.apis.app_validation import AppValidationKey
from nvflare.apis.fl_component import FLComponent
from nvflare.apis.fl_constant import FLContextKey
from nvflare.apis.fl_context import FLContext
from nvflare.apis.job_def import DEFAULT_STUDY

from surgical_aggregation.checkpoints.checkpoint import (
    Checkpoint,
    CheckpointError,
    link_or_copy,
    save,
)
from surgical_aggregation.extras import offered_body
from surgical_aggregation.server.access.job_sites import study
from surgical_aggregation.wire.headers import SIMULATED_JOB

LAST_FILE = "last.npz"
BEST_FILE = "best.npz"

STUDY_FILE = "study.txt"
"""In a job's folder of checkpoints: its FLARE study, if that is not the default one."""

MAX_NAMED = 10
"""Number of the newest jobs that an error message names."""


def jobs_folder(fl_ctx: FLContext) -> Path:
    """Folder in the server's workspace that has a folder of checkpoints for every job."""
    return Path(fl_ctx.get_engine().get_workspace().get_root_dir()) / "checkpoints"


def job_folder(fl_ctx: FLContext) -> Path:
    """The running job's folder in the server's workspace."""
    return Path(fl_ctx.get_engine().get_workspace().get_run_dir(fl_ctx.get_job_id()))


def checkpoint_folders(fl_ctx: FLContext) -> tuple[Path, Path]:
    """Folders of a job's checkpoints on the server.

    Returns:
        `models/` in the job's workspace, which is downloaded with the job, and
        `checkpoints/<job id>/` in the server's workspace, which outlives the job.
    """
    return job_folder(fl_ctx) / "models", jobs_folder(fl_ctx) / fl_ctx.get_job_id()


def checkpoint_of(jobs: str, name: str, fl_ctx: FLContext) -> Path:
    """Path of a checkpoint of an earlier job at this server.

    Args:
        jobs: Id of the job, or several ids separated by commas: then the first that left such a
            file, since an admin may not know whether a lost job left one. Jobs of another FLARE
            study are ignored.
        name: Name of the file.
        fl_ctx: Context of the running job.

    Raises:
        CheckpointError: None of the jobs left such a file here; the message names jobs that did.
    """
    folder = jobs_folder(fl_ctx)
    left = {
        path.parent.name: path
        for path in folder.glob(f"*/{name}")
        if path.is_file() and _of_this_study(path.parent, fl_ctx)
    }
    for job in jobs.split(","):
        if job.strip() in left:
            return left[job.strip()]
    newest = sorted(left, key=lambda job: left[job].stat().st_mtime, reverse=True)
    raise CheckpointError(
        f"job {jobs!r} has no {name} in {str(folder)!r} of this server. Jobs that have one, newest "
        f"first: {', '.join(newest[:MAX_NAMED]) or 'none'}."
    )


def named_by_job(file: str, fl_ctx: FLContext) -> Path:
    """Path of a checkpoint that a job's configuration names.

    The submitter of a job does not operate the server, so a job may name only checkpoints that jobs
    have left there, and values of the server's environment variables. There is no limit in FLARE's
    simulator, where both are the same person, nor for a job with code, which can read any file.

    Args:
        file: Path; a relative one is relative to the server's workspace.
        fl_ctx: Context of the running job.

    Raises:
        CheckpointError: The job may not name this file.
    """
    brings_code = (fl_ctx.get_prop(FLContextKey.JOB_META) or {}).get(AppValidationKey.BYOC)
    if brings_code or fl_ctx.get_job_id() == SIMULATED_JOB or file in os.environ.values():
        return Path(file)
    folder = jobs_folder(fl_ctx).resolve()
    path = (folder.parent / file).resolve()
    if path.is_relative_to(folder) and _of_this_study(path.parent, fl_ctx):
        return path
    raise CheckpointError(
        f"a job may name only checkpoints below {str(folder)!r} of this server, of its own study; "
        f"got {file!r}. Copy it there, or have the server's operator set an environment variable "
        "of the server to it."
    )


def save_to_job(checkpoint: Checkpoint, name: str, fl_ctx: FLContext) -> None:
    """Write a checkpoint once, and link it into both folders of the job.

    Raises:
        CheckpointError: It cannot be written; the previous file is still there.
    """
    in_job, lasting = (folder / name for folder in checkpoint_folders(fl_ctx))
    with _written(lasting):
        if (owner := study(fl_ctx)) != DEFAULT_STUDY:  # before the model that it protects
            lasting.parent.mkdir(parents=True, exist_ok=True)
            (lasting.parent / STUDY_FILE).write_text(owner, encoding="utf-8")
        save(checkpoint, lasting)
    with _written(in_job):
        link_or_copy(lasting, in_job)


def link_in_job(name: str, second: str, fl_ctx: FLContext) -> None:
    """Link a checkpoint of the job to a second name, in both folders.

    Raises:
        CheckpointError: It cannot be written; the previous file is still there.
    """
    for folder in reversed(checkpoint_folders(fl_ctx)):
        with _written(folder / second):
            link_or_copy(folder / name, folder / second)


def _of_this_study(job: Path, fl_ctx: FLContext) -> bool:
    """Whether a folder of checkpoints belongs to the running job's study."""
    file = job / STUDY_FILE
    name = file.read_text(encoding="utf-8") if file.is_file() else DEFAULT_STUDY
    return name == study(fl_ctx)


@contextmanager
def _written(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise CheckpointError(
            f"{str(path)!r} could not be written: {error.strerror or error}. The previous file is "
            "still there: free some disk space, and resume the run."
        ) from error


class InitialBody(FLComponent):
    """The checkpoint to start from.

    Runs on the server. The file is an initial body, or the last.npz or best.npz of an earlier run,
    which this run then continues, with the same sites or others; see `Manifest.started_by`. To
    remove a class first, see `checkpoints.class_changes.remove`.

    Args:
        file: Path of the checkpoint on the server, see `named_by_job`, or the name of a body that
            an installed package offers, see `extras.offered_body`. Default None: none; an installed
            package may offer one for its own data in FLARE's simulator. "" is the same.
    """

    def __init__(self, file: str | None = None):
        super().__init__()
        self.file = file

    def path(self, fl_ctx: FLContext) -> Path:
        """Path of the checkpoint.

        Args:
            fl_ctx: Context of the running job.

        Raises:
            CheckpointError: No file is configured, or the job may not name it.
        """
        if offered := offered_body(self.file, simulated=fl_ctx.get_job_id() == SIMULATED_JOB):
            return offered
        if not self.file:
            raise CheckpointError(
                "the server needs an initial body; none is configured. Set `file` of the job's "
                "InitialBody component, or the environment variable that it refers to at the "
                "server, to the path of a checkpoint there, or to the name of a body that an "
                "installed package offers."
            )
        return named_by_job(self.file, fl_ctx)
