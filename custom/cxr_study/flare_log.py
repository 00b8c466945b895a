"""What FLARE's log files say about a failure, and the notes of a site beside them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from surgical_aggregation.executor import CANNOT_TAKE_PART
from surgical_aggregation.local_notes import notes_file

_ENTRY = re.compile(r"^(?=\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} - )", re.M)
_HEAD = re.compile(r"(?P<time>[-\d]+ [\d:,]+) - (?P<logger>[^ ]+) - (?:ERROR|CRITICAL) - ")
_SITE_REASON = re.compile(rf"{CANNOT_TAKE_PART}(.*?)\n(?=\d{{4}}-|\Z)", re.S)
_RAISED = re.compile(r" - ERROR - |^[\w.]*Error\b")
_TRANSPORT = ("Adapter", "CoreCell", "blob_streamer", "byte_receiver", "byte_streamer")
"""Loggers that complain of every message to a process that is not there yet, or no longer."""


@dataclass(frozen=True)
class LoggedError:
    """An error in a log.

    Attributes:
        time: When, as logged; sorts.
        text: Its line, and of a traceback the exception alone.
    """

    time: str
    text: str


def read(log: Path) -> str:
    """Text of a log; of one that is not there none."""
    return log.read_text(encoding="utf-8", errors="replace") if log.is_file() else ""


def site_notes(workspace: Path, job: str) -> Path:
    """A site's notes of a job (see `local_notes`), in the form of a log.

    Args:
        workspace: The site's FLARE workspace.
        job: Id of the job.
    """
    return workspace / notes_file(job)


def site_reason(notes: Path) -> str | None:
    """Why a site cannot take part, by its notes; None where they do not say so."""
    match = _SITE_REASON.search(read(notes))
    return match[1] if match else None


def errors(*logs: Path) -> list[LoggedError]:
    """Errors in logs, oldest first, but those of messages that could not be delivered."""
    found = []
    for entry in (entry for log in logs for entry in _ENTRY.split(read(log))):
        head = _HEAD.match(entry)
        if head and head["logger"] not in _TRANSPORT:
            found.append(LoggedError(head["time"], _without_frames(entry)))
    return sorted(found, key=lambda error: error.time)


def last_errors(log: Path, count: int = 5) -> str:
    """Last errors of a log, or its last lines where it has none."""
    texts = [error.text for error in errors(log)]
    lines = read(log).splitlines()
    raised = [line for line in lines if _RAISED.search(line)]  # of other programs
    return "\n".join((texts or raised or lines)[-count:])


def _without_frames(entry: str) -> str:
    lines = entry.rstrip().splitlines()
    indented = [number for number, line in enumerate(lines) if line.startswith("  File ")]
    if not indented:
        return "\n".join(lines)
    frames_end = next(
        (n for n in range(indented[-1], len(lines)) if not lines[n].startswith("  ")), len(lines)
    )
    head = lines[0].removesuffix("Traceback (most recent call last):").rstrip()
    return "\n".join([head, *lines[frames_end:]])
