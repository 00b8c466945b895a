"""What FLARE's log files say about a failure, and the notes of a site beside them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from surgical_aggregation.site import local_notes
from surgical_aggregation.site.executor import CANNOT_TAKE_PART

_ENTRY = re.compile(r"^(?=\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} - )", re.M)
_HEAD = re.compile(r"(?P<time>[-\d]+ [\d:,]+) - (?P<logger>[^ ]+) - (?:ERROR|CRITICAL) - ")
_SITE_REASON = re.compile(rf"{CANNOT_TAKE_PART}(.*?)\n(?=\d{{4}}-|\Z)", re.S)
_RAISED = re.compile(r" - ERROR - |^[\w.]*Error\b")
_WRAPPED = re.compile(r"nvflare\.[\w.]*ConfigError\b")
"""What FLARE makes of an exception in a configuration, which it has logged before by itself."""

_NOTES = local_notes.LOGGER
"""The logger that stands in a site's notes."""

_QUALIFIED = re.compile(r"^(?:\w+\.)+(?=\w+:)")
_TRANSPORT = ("Adapter", "CoreCell", "blob_streamer", "byte_receiver", "byte_streamer")
"""Loggers that complain of every message to a process that is not there."""


@dataclass(frozen=True)
class LoggedError:
    """An error in a log.

    Attributes:
        time: When, as logged; sorts.
        text: Its line, and of a traceback the exception alone.
        raised: That exception, as "OSError: ...", or what a site's notes say instead; None where
            there is neither.
    """

    time: str
    text: str
    raised: str | None = None


def read(log: Path) -> str:
    """Text of a log; of one that is not there none."""
    return log.read_text(encoding="utf-8", errors="replace") if log.is_file() else ""


def site_notes(workspace: Path, job: str) -> Path:
    """A site's notes of a job (see `local_notes`), in its FLARE workspace; in the form of a log."""
    return workspace / local_notes.notes_file(job)


def site_reason(notes: Path) -> str | None:
    """Why a site cannot take part, by its notes; None where they do not say so."""
    match = _SITE_REASON.search(read(notes))
    return match[1] if match else None


def errors(*logs: Path) -> list[LoggedError]:
    """Errors in logs, oldest first, without those of messages that could not be delivered."""
    found = []
    for entry in (entry for log in logs for entry in _ENTRY.split(read(log))):
        head = _HEAD.match(entry)
        if head and head["logger"] not in _TRANSPORT:
            line, raised = _without_frames(entry)
            if head["logger"] == _NOTES:
                raised = raised or line[head.end() :]
            text = line if raised is None else f"{line}\n{raised}"
            found.append(LoggedError(head["time"], text, raised))
    return sorted(found, key=lambda error: error.time)


def last_exception(*logs: Path) -> tuple[str, Path] | None:
    """The exception of the last traceback in logs, or the last error in notes; and its file."""
    raised = [(e.time, e.raised, log) for log in logs for e in errors(log) if e.raised]
    own = [found for found in raised if not _WRAPPED.match(found[1])]
    if not raised:
        return None
    _, text, log = max(own or raised, key=lambda found: found[0])
    return _QUALIFIED.sub("", text), log


def last_errors(log: Path, count: int = 5) -> str:
    """Last errors of a log, or its last lines where it has none."""
    texts = [error.text for error in errors(log)]
    lines = read(log).splitlines()
    raised = [line for line in lines if _RAISED.search(line)]  # of other programs
    return "\n".join((texts or raised or lines)[-count:])


def _without_frames(entry: str) -> tuple[str, str | None]:
    """An entry without its traceback, and the exception of that, if it has one."""
    lines = entry.rstrip().splitlines()
    indented = [number for number, line in enumerate(lines) if line.startswith("  File ")]
    if not indented:
        return "\n".join(lines), None
    frames_end = next(
        (n for n in range(indented[-1], len(lines)) if not lines[n].startswith("  ")), len(lines)
    )
    head = lines[0].removesuffix("Traceback (most recent call last):").rstrip()
    return head, "\n".join(lines[frames_end:]) or None
