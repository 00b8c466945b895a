"""What a site tells its own hospital alone, outside of FLARE's logs.

FLARE streams a site's error_log.txt to the server unless its kit forbids it, and any other log
where a job asks for it. So what may not leave (withheld classes, counts, paths, rows of a table)
goes to a file that FLARE does not know, and that only the site's own account can read; the log
names the file. Its lines are JSON:

    {"date", "note"}
    {"date", "what", "kind", "reason"}

The latter are errors: what the site could not do, see `error_kind`, and the error's own words. An
unforeseen error has its trace in the lines below.
"""

import json
import os
import sys
import traceback
from datetime import datetime
from pathlib import Path

from nvflare.apis.fl_context import FLContext

from surgical_aggregation.wire.untrusted_text import checked_job, error_kind

CANNOT_TAKE_PART = "this site cannot take part in the run"
"""What a site could not do that could not start."""

_FORESEEN = (ValueError, OSError, MemoryError)
"""Errors whose message says enough."""


def notes_file(job: str) -> str:
    """Path of a site's notes of a job, relative to the site's workspace (raises `ValueError`)."""
    return f"local_notes/{checked_job(job)}.txt"


def note(fl_ctx: FLContext, text: str) -> str:
    """Write a line into the site's notes of the running job; returns what the log may say.

    That is the file's name relative to the site's workspace, and why it could not be written, if
    so.
    """
    return _write(fl_ctx, {"note": text})


def note_error(fl_ctx: FLContext, what: str, error: Exception) -> str:
    """Write an error into the site's notes, and what failed, such as "train failed".

    Returns:
        What the log may say, without an event, which would reach the admins: what failed, and where
        the reason is.
    """
    said = {"what": what, "kind": error_kind(error), "reason": str(error) or type(error).__name__}
    trace = [] if isinstance(error, _FORESEEN) else traceback.format_exception(error)
    return f"{what}; {_write(fl_ctx, said, ''.join(trace))} says why"


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
    except OSError as problem:  # a full disk must not keep a site from answering
        print(f"{name} cannot be written: {problem}\n{text}", file=sys.stderr)
        return f"{name} (which cannot be written: {problem.strerror})"
    return name
