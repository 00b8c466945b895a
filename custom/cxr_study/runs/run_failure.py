"""Why a run did not go on: who could not do its part, by its record and FLARE's logs at hand."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from cxr_study.runs.job_results import read_events
from surgical_aggregation.site import local_notes
from surgical_aggregation.site.executor import CANNOT_TAKE_PART
from surgical_aggregation.wire.headers import CHECK_TASK

Logs = Sequence[Path]

SERVER = "server"
"""The server among the parties."""

_CURES: Mapping[str, str] = MappingProxyType(
    {
        r"(?s)^(?!.*make room).*(No space left|quota exceeded)": "Make room on that disk, and go "
        "on with the run",
        r"No module named|Can't load class(?!.*needs nvflare)": "Install it there, or correct its "
        "name in the job",
        r"has parameters error": "Correct its arguments in the job",
        r"not in allow_list": "Allow it there with `surgagg deploy kit`, or correct its name in "
        "the job",
        r"not permitted to train": "Permit it in the server's table, or take it out of the site's "
        "classes",
        r"MemoryError|out of memory|\bOOM\b": "Lower batch_size, or give that process more memory",
    }
)
"""Words of a reason that does not say what to do -> what to do."""

_KEPT = 250

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


def why(server: Path | None, logs: Mapping[str, Logs], but: Collection[str] = ()) -> str | None:
    """What kept a run from its next whole round: each party's own words, else the record's.

    Args:
        server: The server's folder of the job, with the record; None: it is not at hand.
        logs: Party (`SERVER` or a site) -> its error log of the job, and a site's notes, as far as
            at hand.
        but: Sites of which nothing is to be said.

    Returns:
        Lines: who, why and what to do, the logs to read, and what the server did then. None where
        nobody says anything, apart from why the server ended the run; see `ended`.
    """
    before, now = _refusals(server)
    end = ended(server)
    recovered = {event["site"] for event in before} - {event["site"] for event in now}
    own: dict[str, dict[str, Path]] = {}
    for party in sorted(logs.keys() - {*but, *recovered}):
        overruled = party == SERVER and end is not None
        if not overruled and (found := _own_reason(logs[party])):
            own.setdefault(found[0], {})[party] = found[1]
    lines = []
    for reason, files in own.items():
        lines.append(_told(", ".join(files), reason))
        lines += [f"The log of {party} is {file}" for party, file in files.items()]
    said = {party for files in own.values() for party in files}
    for event in now:
        repeated = event["site"] in said and event["reason"] in (end or "")
        if event["site"] not in but and not repeated:
            lines.append(_told(f"{event['site']}, {_stage(event)}", event["reason"]))
    if lines and end:
        lines.append(f"The server ended the run: {end}")
    return "\n".join(lines) or None


def ended(server: Path | None) -> str | None:
    """Why the server itself ended the run, by its folder (see `why`); None where it did not."""
    events = [] if server is None else read_events(server)
    return next((event["reason"] for event in events if event["event"] == "failed"), None)


def never_began(server: Path | None) -> bool:
    """Whether the server ended the run, by its folder, before the first round.

    Not for a site that failed in a task, or was silent; but for one that could not take part.
    """
    failed = any(
        event["event"] == "silent" or event.get("task") != CHECK_TASK
        for event in _refusals(server)[1]
    )
    events = [] if server is None or failed else read_events(server)
    return any(event["event"] == "failed" and not event.get("began", True) for event in events)


def refused(server: Path | None) -> list[str]:
    """Sites whose results the server could not use after the last whole round."""
    return sorted({event["site"] for event in _refusals(server)[1]})


def shortened(text: str) -> str:
    """A long text without its middle: what failed stands at its ends."""
    return text if len(text) <= 2 * _KEPT else f"{text[:_KEPT]} ... {text[-_KEPT:]}"


def _refusals(server: Path | None) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Results that were refused or did not come: until the last whole round, and after it."""
    before: list[dict[str, Any]] = []
    now: list[dict[str, Any]] = []
    for event in [] if server is None else read_events(server):
        if event["event"] == "round":
            before, now = before + now, []
        elif event["event"] in ("refused", "silent"):
            now.append(event)
    return before, now


def _own_reason(logs: Logs) -> tuple[str, Path] | None:
    """Why a party failed, by its own words, and where these stand."""
    for log in logs:
        if reason := site_reason(log):
            return reason, log
    found = last_exception(*logs)
    return None if found is None else (shortened(found[0]), found[1])


def _stage(event: Mapping[str, Any]) -> str:
    task = event.get("task", "train")
    return f"round {event['round']}" if task == "train" else str(task)


def _told(who: str, reason: str) -> str:
    """A reason with what to do about it, where it does not say that itself."""
    cure = next((cure for words, cure in _CURES.items() if re.search(words, reason)), None)
    told = f"{who}: {reason}"
    return f"{told.rstrip('.')}. {cure}." if cure else told


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


def read_log(log: Path) -> str:
    """Text of a log; of one that is not there none."""
    return log.read_text(encoding="utf-8", errors="replace") if log.is_file() else ""


def site_notes(workspace: Path, job: str) -> Path:
    """A site's notes of a job (see `local_notes`), in its FLARE workspace; in the form of a log."""
    return workspace / local_notes.notes_file(job)


def site_reason(notes: Path) -> str | None:
    """Why a site cannot take part, by its notes; None where they do not say so."""
    match = _SITE_REASON.search(read_log(notes))
    return match[1] if match else None


def logged_errors(*logs: Path) -> list[LoggedError]:
    """Errors in logs, oldest first, without those of messages that could not be delivered."""
    found = []
    for entry in (entry for log in logs for entry in _ENTRY.split(read_log(log))):
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
    raised = [(e.time, e.raised, log) for log in logs for e in logged_errors(log) if e.raised]
    own = [found for found in raised if not _WRAPPED.match(found[1])]
    if not raised:
        return None
    _, text, log = max(own or raised, key=lambda found: found[0])
    return _QUALIFIED.sub("", text), log


def last_errors(log: Path, count: int = 5) -> str:
    """Last errors of a log, or its last lines where it has none."""
    texts = [error.text for error in logged_errors(log)]
    lines = read_log(log).splitlines()
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
