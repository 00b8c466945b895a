"""Private notes of a site for its own hospital, outside of FLARE's logs.

FLARE streams a site's error_log.txt to the server unless the site's kit forbids it, and other logs
at a job's request. Information that may not leave the site (withheld classes, counts, paths, rows
of a table) is therefore written to a file unknown to FLARE, readable only by the site's account;
the log names the file. Its lines are JSON:

    {"date", "note"}
    {"date", "what", "kind", "reason"}

The second form is an error: the operation that failed, the kind of error (see `error_kind`) and its
message. An unexpected error is followed by its traceback.
"""

import json
import os
import sys
import traceback
from datetime import datetime
from pathlib import Path

from nvflare.apis.fl_context import FLContext

from surgical_aggregation.wire.untrusted_text import checked_job, error_kind

CANNOT_PARTICIPATE = "this site cannot participate in the run"
"""The "what" of an error at the start of a run."""

_FORESEEN = (ValueError, OSError, MemoryError)
"""Errors that are noted without a traceback."""


def notes_file(job: str) -> str:
    """Path of a site's notes of a job, relative to the site's workspace (raises `ValueError`)."""
    return f"local_notes/{checked_job(job)}.txt"


def note(fl_ctx: FLContext, text: str) -> str:
    """Write a line into the site's notes of the running job.

    Returns:
        Text for the log: the file's path relative to the site's workspace, with the reason if it
        could not be written.
    """
    return _write(fl_ctx, {"note": text})


def note_error(fl_ctx: FLContext, what: str, error: Exception) -> str:
    """Write an error into the site's notes.

    Args:
        fl_ctx: Context of the running job.
        what: What failed, such as "train failed".
        error: The error.

    Returns:
        Text for the log: what failed, and the file with the reason. Log it without an event, which
        would reach the admins.
    """
    facts = {"what": what, "kind": error_kind(error), "reason": str(error) or type(error).__name__}
    trace = [] if isinstance(error, _FORESEEN) else traceback.format_exception(error)
    return f"{what}; see {_write(fl_ctx, facts, ''.join(trace))}"


def _write(fl_ctx: FLContext, facts: dict[str, str], trace: str = "") -> str:
    name = notes_file(fl_ctx.get_job_id())
    path = Path(fl_ctx.get_engine().get_workspace().get_root_dir()) / name
    date = datetime.now().isoformat(" ", "seconds")
    text = json.dumps({"date": date, **facts}, ensure_ascii=False)
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        private = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        with os.fdopen(private, "a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(f"{text}\n{trace}")
    except OSError as problem:  # a full disk must not keep a site from replying
        print(f"{name} cannot be written: {problem}\n{text}", file=sys.stderr)
        return f"{name} (which cannot be written: {problem.strerror})"
    return name
