"""Checkpoints that earlier jobs left at this server."""

from __future__ import annotations

from pathlib import Path

from nvflare.apis.fl_context import FLContext

from surgical_aggregation.checkpoint import CheckpointError

NAMED = 10
"""How many of the newest jobs a refusal names."""


def jobs_folder(fl_ctx: FLContext) -> Path:
    """Folder of the server's workspace with a folder of checkpoints for every job."""
    return Path(fl_ctx.get_engine().get_workspace().get_root_dir()) / "checkpoints"


def checkpoint_of(job: str, name: str, fl_ctx: FLContext) -> Path:
    """Path of a checkpoint of an earlier job at this server.

    Args:
        job: Its id. Only what stands in `jobs_folder` is an id, so no text leads out of it.
        name: Name of the file.
        fl_ctx: Context of the running job, on the server.

    Raises:
        CheckpointError: The job left no such file here; the message names jobs that did.
    """
    folder = jobs_folder(fl_ctx)
    left = [path for path in folder.glob(f"*/{name}") if path.is_file()]
    for path in left:
        if path.parent.name == job:
            return path
    left.sort(key=lambda path: path.stat().st_mtime, reverse=True)
    jobs = ", ".join(path.parent.name for path in left[:NAMED]) or "none"
    raise CheckpointError(
        f"an earlier job at this server is needed that left a {name}; {job!r} left none in "
        f"{str(folder)!r}. Jobs that did, the newest first: {jobs}."
    )
