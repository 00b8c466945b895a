"""What FLARE's log files say about a failure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from surgical_aggregation.executor import CANNOT_TAKE_PART

_ENTRY = re.compile(r"^(?=\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} - )", re.M)
_HEAD = re.compile(r"(?P<time>[-\d]+ [\d:,]+) - (?P<logger>[^ ]+) - (?:ERROR|CRITICAL) - ")
_SITE_REASON = re.compile(rf"{CANNOT_TAKE_PART}(.*?)\n(?=\d{{4}}-|\Z)", re.S)
_RAISED = re.compile(r" - ERROR - |^[\w.]*Error\b")
_WRAPPED = re.compile(r"nvflare\.[\w.]*ConfigError\b")
"""What FLARE makes of an exception in a configuration, which it has logged before by itself."""

_QUALIFIED = re.compile(r"^(?:\w+\.)+(?=\w+:)")
_TRANSPORT = ("Adapter", "CoreCell", "blob_streamer", "byte_receiver", "byte_streamer")
"""Loggers that complain of every message to a process that is not there yet, or no longer."""


@dataclass(frozen=True)
class LoggedError:
    """An error in a log.

    Attributes:
        time: When, as logged; sorts.
        text: Its line, and of a traceback the exception alone.
        raised: The exception of its traceback, as "OSError: ..."; None where it has none.
    """

    time: str
    text: str
    raised: str | None = None


def read(log: Path) -> str:
    """Text of a log; of one that is not there none."""
    return log.read_text(encoding="utf-8", errors="replace") if log.is_file() else ""


def site_reason(log: Path) -> str | None:
    """Why a site cannot take part, by its own log; None where it does not say so."""
    match = _SITE_REASON.search(read(log))
    return match[1] if match else None


def errors(log: Path) -> list[LoggedError]:
    """Errors in a log, oldest first, but those of messages that could not be delivered."""
    found = []
    for entry in _ENTRY.split(read(log)):
        head = _HEAD.match(entry)
        if head and head["logger"] not in _TRANSPORT:
            line, raised = _without_frames(entry)
            text = line if raised is None else f"{line}\n{raised}"
            found.append(LoggedError(head["time"], text, raised))
    return found


def last_exception(log: Path) -> str | None:
    """Exception that the last traceback of a log ends with; None where it has no traceback."""
    raised = [error.raised for error in errors(log) if error.raised]
    own = [text for text in raised if not _WRAPPED.match(text)]
    return _QUALIFIED.sub("", (own or raised)[-1]) if raised else None


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
