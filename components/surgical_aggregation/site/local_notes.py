"""What a site tells its own hospital alone, outside of FLARE's logs.

FLARE streams a site's error_log.txt to the server unless its kit forbids it, and any other log
where a job asks for it. So what may not leave (withheld classes, counts, paths, rows of a table)
goes to a file that FLARE does not know, and that only the site's own account can read; the log
names the file.
"""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path

from nvflare.apis.fl_context import FLContext

from surgical_aggregation.wire.untrusted_text import checked_job

_LINE = logging.Formatter("%(asctime)s - %(name)s - %(levelname)s - %(message)s")
"""Format of FLARE's logs, so that the same tools read the notes."""

_FORESEEN = (ValueError, OSError, MemoryError)
"""Errors whose message says enough."""

LOGGER = "surgical_aggregation"
"""Logger named in the lines of a site's notes."""


def notes_file(job: str) -> str:
    """Path of a site's notes of a job, relative to the site's workspace (raises `JobIdError`)."""
    return f"local_notes/{checked_job(job)}.txt"


def note(fl_ctx: FLContext, text: str) -> str:
    """Write a line into the site's notes of the running job; returns what the log may say.

    That is the file's name relative to the site's workspace, and why it could not be written, if
    so.
    """
    return _write(fl_ctx, logging.INFO, text)


def note_error(fl_ctx: FLContext, doing: str, error: Exception) -> str:
    """Write an error into the site's notes, after words such as "train failed: "; see `note`.

    An unforeseen error has its trace below.
    """
    text = f"{doing}{str(error) or type(error).__name__}"
    return _write(fl_ctx, logging.ERROR, text, None if isinstance(error, _FORESEEN) else error)


def _write(fl_ctx: FLContext, level: int, text: str, traced: Exception | None = None) -> str:
    name = notes_file(fl_ctx.get_job_id())
    trace = (type(traced), traced, traced.__traceback__) if traced else None
    line = logging.LogRecord(LOGGER, level, "", 0, text, None, trace)
    path = Path(fl_ctx.get_engine().get_workspace().get_root_dir()) / name
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        private = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        with os.fdopen(private, "a", encoding="utf-8") as file:
            file.write(_LINE.format(line) + "\n")
    except OSError as problem:  # a full disk must not keep a site from answering
        print(f"{name} cannot be written: {problem}\n{text}", file=sys.stderr)
        return f"{name} (which cannot be written: {problem.strerror})"
    return name
