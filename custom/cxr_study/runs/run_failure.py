"""Find out why a run failed, from the server's record, the sites' notes and FLARE's logs."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from cxr_study.runs.job_results import json_lines, read_events
from surgical_aggregation.site.local_notes import CANNOT_PARTICIPATE, notes_file
from surgical_aggregation.wire.headers import CHECK_TASK

SERVER = "server"
"""Name of the server among the parties of a job."""

_ROOM = "Make room on that disk, and resume the run"
_MEMORY = "Lower batch_size, or give that process more memory"
_REMEDIES: Mapping[str, str] = MappingProxyType(
    {"ENOSPC": _ROOM, "EDQUOT": _ROOM, "MemoryError": _MEMORY, "ResourceExhaustedError": _MEMORY}
)
"""Kind of an error (see `error_kind`) -> what to do."""

_NOT_STARTED = (
    "nothing of this software had started at {}. Correct the job's configuration, or install or "
    "allow (`surgagg deploy kit`) there what it names."
)
_SITE_FAILED = (
    r"Failing job {job}"
    r"(?: due to reported failure from |: terminal outcome unavailable from )([^\s:]+)"
)
"""Line of the server's FLARE log that names the site whose process of a job failed."""


_KEPT = 250
"""Characters that are kept at each end of a long message."""


class Party(NamedTuple):
    """Files of the server or a site about a job: FLARE's error log, and this software's notes."""

    log: Path
    notes: Path | None = None


@dataclass(frozen=True)
class Failure:
    """Why a run failed.

    Attributes:
        reason: Lines that state who failed, why, what to do, and which logs to read; empty if no
            file gives a reason.
        final: Whether another attempt would fail in the same way.
    """

    reason: str
    final: bool


def parties(workspaces: Mapping[str, Path], job: str, log: str) -> dict[str, Party]:
    """Locate the files of a job's parties.

    Args:
        workspaces: Party -> its FLARE workspace.
        job: Id of the job.
        log: Path of FLARE's error log, relative to a workspace.
    """
    return {name: Party(at / log, at / notes_file(job)) for name, at in workspaces.items()}


def explain(server: Path | None, known: Mapping[str, Party], lost: Collection[str] = ()) -> Failure:
    """Find out why a run failed.

    The reason consists, in this order, of

    1. the last error in the notes of each known party, without sites whose result was accepted
       again later;
    2. results that were refused or missing after the last completed round;
    3. the server's reason for ending the run;
    4. if there are neither notes nor a reason of the server, the end of FLARE's log of each party
       that is lost, or at which this software had not started.

    Args:
        server: The server's folder of the job, with the record; None: not on this machine.
        known: Party (`SERVER` or a site) -> its files, for those on this machine.
        lost: Parties whose process ended, see `lost_processes`. They are ignored if the server
            ended the run itself. Else errors of other parties are left out, as consequences.
    """
    events = [] if server is None else read_events(server)
    failed = next((event for event in events if event["event"] == "failed"), None)
    lost = () if failed else lost
    before, now = refusals(events)
    recovered = {event["site"] for event in before} - {event["site"] for event in now}
    noted = {name: error for name in sorted(known) if (error := _last_error(known[name].notes))}
    own = {name: noted[name] for name in noted if name in lost or not (lost or name in recovered)}
    lines = []
    for name, error in own.items():
        lines += [
            _with_remedy(f"{name}: {error['reason']}", error),
            f"The log of {name} is {known[name].notes}",
        ]
    for event in now:
        if not (failed and event["site"] in own and event["reason"] in failed["reason"]):
            lines.append(f"{event['site']}, {_stage(event)}: {event['reason']}")
    if failed:
        ended = _with_remedy(failed["reason"], failed)
        lines.append(f"The server ended the run: {ended}" if lines else ended)
        if failed.get("kind") and SERVER in known:
            lines.append(f"The log of {SERVER} is {known[SERVER].log}")
    started = {SERVER for _ in events[:1]} | {e["site"] for e in events if e["event"] == "declared"}
    silent = () if own or failed else {*lost, *(known.keys() - started)}
    ends = {
        name: end for name in sorted(silent) if name in known and (end := tail(known[name].log))
    }
    never = sorted(ends.keys() - started)
    if never:
        lines.append(_NOT_STARTED.format(", ".join(never)))
    lines += [
        f"The log of {name} is {known[name].log}, and ends with\n{ends[name]}" for name in ends
    ]
    if lost:
        where = " or ".join("the server" if name == SERVER else name for name in sorted(lost))
        unknown = (
            ", and no file on this machine gives a reason. Was it killed, or could it not load the "
            "job?"
        )
        lines.insert(0, f"a process at {where} ended{'.' if own or ends else unknown}")
    checked = all(e["event"] == "refused" and e.get("task") == CHECK_TASK for e in now)
    # Final as well: the sites' answers to the check, unless a site failed, before the first round.
    in_check = checked and failed is not None and not failed.get("began", True)
    return Failure("\n".join(lines), bool(never) or in_check)


def lost_processes(job: str, server: Path | None, service: Path | None) -> list[str]:
    """Find the party whose process of a deployed job ended unexpectedly.

    Args:
        job: Id of the job.
        server: The server's folder of the job; None: not on this machine. Without an event "ended"
            in the record it was the server's process. Else the event lists the sites that owed a
            result.
        service: The server's workspace, whose FLARE log names the site; None: not on this machine.

    Returns:
        One party if it is known; else the sites of which one is meant; empty if none is.
    """
    events = [] if server is None else read_events(server)
    ended = next((event for event in events if event["event"] == "ended"), None)
    if events and ended is None:
        return [SERVER]
    log = _text(service / "log.txt") if service else ""
    if site := re.search(_SITE_FAILED.format(job=re.escape(job)), log):
        return [site[1]]
    return sorted(ended.get("owing", ())) if ended else []


def refusals(events: Sequence[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Select the events "refused" and "silent" of a job.

    Args:
        events: All of the job, in order.

    Returns:
        Those until the last completed round, and those after it.
    """
    last = max((at for at, event in enumerate(events) if event["event"] == "round"), default=0)
    before, now = (
        [event for event in part if event["event"] in ("refused", "silent")]
        for part in (events[:last], events[last:])
    )
    return before, now


def tail(log: Path, count: int = 5) -> str:
    """The last non-empty lines of a log, long ones shortened in the middle.

    Args:
        log: The file; "" is returned if it does not exist.
        count: Number of lines. Default 5.
    """
    lines = [line for line in _text(log).splitlines() if line.strip()]
    return "\n".join(map(_shortened, lines[-count:]))


def _shortened(text: str) -> str:
    """A long text without its middle; the cause of an error is usually at one of the ends."""
    return text if len(text) <= 2 * _KEPT else f"{text[:_KEPT]} ... {text[-_KEPT:]}"


def _text(log: Path) -> str:
    """Content of a log; empty if the file does not exist."""
    return log.read_text(encoding="utf-8", errors="replace") if log.is_file() else ""


def _last_error(notes: Path | None) -> dict[str, Any] | None:
    """The last error in a site's notes; its "reason" includes what the site was doing."""
    errors = [line for line in json_lines(notes) if "kind" in line] if notes else []
    if not errors:
        return None
    last = errors[-1]
    what = "" if last["what"] == CANNOT_PARTICIPATE else f"{last['what']}: "
    return {**last, "reason": _shortened(f"{what}{last['reason']}")}


def _stage(event: Mapping[str, Any]) -> str:
    """When an event occurred: "round 3", or the task if it was not training."""
    task = event.get("task", "train")
    return f"round {event['round']}" if task == "train" else str(task)


def _with_remedy(text: str, error: Mapping[str, Any]) -> str:
    """The text, followed by what to do against an error of this kind, if that is known."""
    remedy = _REMEDIES.get(error.get("kind") or "")
    return f"{text.rstrip('.')}. {remedy}." if remedy else text
