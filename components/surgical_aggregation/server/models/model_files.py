"""Where global models are on the server's disk, and which of them a job starts from."""

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
    give_second_name,
    save,
)
from surgical_aggregation.extras import offered_body
from surgical_aggregation.server.access.job_sites import study
from surgical_aggregation.wire.headers import SIMULATED_JOB

LAST_FILE = "last.npz"
BEST_FILE = "best.npz"

STUDY_FILE = "study.txt"
"""Beside a job's checkpoints: the study of FLARE's that it is of, where it is of one."""

NAMED = 10
"""How many of the newest jobs an error message names."""


def jobs_folder(fl_ctx: FLContext) -> Path:
    """Folder of the server's workspace with a folder of checkpoints for every job."""
    return Path(fl_ctx.get_engine().get_workspace().get_root_dir()) / "checkpoints"


def job_folder(fl_ctx: FLContext) -> Path:
    """The running job's folder in the server's workspace."""
    return Path(fl_ctx.get_engine().get_workspace().get_run_dir(fl_ctx.get_job_id()))


def checkpoint_folders(fl_ctx: FLContext) -> tuple[Path, Path]:
    """Folders of a job's checkpoints on the server.

    Returns:
        `models/` in the job's own workspace, which is downloaded with the job, and
        `checkpoints/<job id>/` in the server's, which outlives the job's.
    """
    return job_folder(fl_ctx) / "models", jobs_folder(fl_ctx) / fl_ctx.get_job_id()


def checkpoint_of(jobs: str, name: str, fl_ctx: FLContext) -> Path:
    """Path of a checkpoint of an earlier job at this server.

    Args:
        jobs: Its id, or several with commas: then the first that left such a file, for an admin may
            not know whether a lost job left one. Only folders of `jobs_folder` are ids. Jobs of
            another study do not count.
        name: Name of the file.
        fl_ctx: Context of the running job.

    Raises:
        CheckpointError: No job left such a file here; the message names jobs that did.
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
        f"an earlier job at this server is needed that left a {name}; {jobs!r} left none in "
        f"{str(folder)!r}. Jobs that did, the newest first: {', '.join(newest[:NAMED]) or 'none'}."
    )


def named_by_job(file: str, fl_ctx: FLContext) -> Path:
    """Path of a checkpoint that a job names; a relative one is in the server's workspace.

    Who submits a job is not who runs the server, so a job may name what jobs have left there, or
    what a variable of the server's environment holds. In FLARE's simulator both are one person, and
    a job that brings code, or is marked so, may read any file anyway.

    Raises:
        CheckpointError: It is another file.
    """
    brings_code = (fl_ctx.get_prop(FLContextKey.JOB_META) or {}).get(AppValidationKey.BYOC)
    if brings_code or fl_ctx.get_job_id() == SIMULATED_JOB or file in os.environ.values():
        return Path(file)
    folder = jobs_folder(fl_ctx).resolve()
    path = (folder.parent / file).resolve()
    if path.is_relative_to(folder) and _of_this_study(path.parent, fl_ctx):
        return path
    raise CheckpointError(
        f"a job may name a checkpoint below {str(folder)!r} of this server, of its own study; got "
        f"{file!r}. Copy it there, or have the server's operator name it in a variable of the "
        "server's environment."
    )


def save_to_job(checkpoint: Checkpoint, name: str, fl_ctx: FLContext) -> None:
    """Write a checkpoint once, and give it its name in both folders of the job.

    Raises:
        CheckpointError: The disk does not take it; what was there before still is.
    """
    in_job, lasting = (folder / name for folder in checkpoint_folders(fl_ctx))
    with _written(lasting):
        save(checkpoint, lasting)
        if (of := study(fl_ctx)) != DEFAULT_STUDY:
            (lasting.parent / STUDY_FILE).write_text(of, encoding="utf-8")
    with _written(in_job):
        give_second_name(lasting, in_job)


def name_in_job(name: str, second: str, fl_ctx: FLContext) -> None:
    """Give a checkpoint of the job a second name, in both folders.

    Raises:
        CheckpointError: The disk does not take it; what was there before still is.
    """
    for folder in reversed(checkpoint_folders(fl_ctx)):
        with _written(folder / second):
            give_second_name(folder / name, folder / second)


def _of_this_study(job: Path, fl_ctx: FLContext) -> bool:
    """Whether a folder of checkpoints is of the running job's study."""
    file = job / STUDY_FILE
    of = file.read_text(encoding="utf-8") if file.is_file() else DEFAULT_STUDY
    return of == study(fl_ctx)


@contextmanager
def _written(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise CheckpointError(
            f"{str(path)!r} could not be written: {error.strerror or error}. The one before it is "
            "still there: make room, and continue the job."
        ) from error


class InitialBody(FLComponent):
    """The checkpoint to start from.

    Runs on the server. The file is made once, or is the last.npz or best.npz of an earlier run,
    which this run then continues, on the same sites or others; see `Manifest.started_by`, and
    `remove_classes` for taking a class out before that.

    Args:
        file: Path of the checkpoint on the server, see `named_by_job`, or the name of a body that
            a package installed there offers, see `extras.offered_body`. None, the default, and ""
            name none: then a package may offer one for its own data in FLARE's simulator.
    """

    def __init__(self, file: str | None = None):
        super().__init__()
        self.file = file

    def path(self, fl_ctx: FLContext) -> Path:
        """Path of the checkpoint.

        Args:
            fl_ctx: Of the job.

        Raises:
            CheckpointError: No file is configured, or one that a job may not name.
        """
        if offered := offered_body(self.file, simulated=fl_ctx.get_job_id() == SIMULATED_JOB):
            return offered
        if not self.file:
            raise CheckpointError(
                "the server needs an initial body by name; none is configured. Make one, and set "
                "CXR_INITIAL_BODY to its path where the server starts, or name it as the job's "
                "initial_body; either may also be a body that an installed package offers, such as "
                "'drawings', pre-trained on drawings."
            )
        return named_by_job(self.file, fl_ctx)
