"""Checkpoints that earlier jobs left at this server."""

from __future__ import annotations

from pathlib import Path

from nvflare.apis.fl_context import FLContext

from surgical_aggregation.checkpoints.checkpoint import CheckpointError

NAMED = 10
"""How many of the newest jobs a refusal names."""


def jobs_folder(fl_ctx: FLContext) -> Path:
    """Folder of the server's workspace with a folder of checkpoints for every job."""
    return Path(fl_ctx.get_engine().get_workspace().get_root_dir()) / "checkpoints"


def checkpoint_of(jobs: str, name: str, fl_ctx: FLContext) -> Path:
    """Path of a checkpoint of an earlier job at this server.

    Args:
        jobs: Its id, or several, separated by commas: then the first that left such a file. Only
            what stands in `jobs_folder` is an id, so no text leads out of it.
        name: Name of the file.
        fl_ctx: Context of the running job, on the server.

    Raises:
        CheckpointError: No job left such a file here; the message names jobs that did.

    Example:
        An admin may not know whether a job that the server lost has left a model. With
        "<that job>,<the one that it continued>" it need not be known.
    """
    folder = jobs_folder(fl_ctx)
    left = {path.parent.name: path for path in folder.glob(f"*/{name}") if path.is_file()}
    for job in jobs.split(","):
        if job.strip() in left:
            return left[job.strip()]
    newest = sorted(left, key=lambda job: left[job].stat().st_mtime, reverse=True)
    raise CheckpointError(
        f"an earlier job at this server is needed that left a {name}; {jobs!r} left none in "
        f"{str(folder)!r}. Jobs that did, the newest first: {', '.join(newest[:NAMED]) or 'none'}."
    )
