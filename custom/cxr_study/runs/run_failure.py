"""Why a run failed: the server's record and the sites' notes say it, FLARE's logs before them."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from cxr_study.runs.job_results import json_lines, read_events
from surgical_aggregation.site.local_notes import CANNOT_TAKE_PART, notes_file
from surgical_aggregation.wire.headers import CHECK_TASK

SERVER = "server"
"""The server among the parties."""

_ROOM = "Make room on that disk, and go on with the run"
_MEMORY = "Lower batch_size, or give that process more memory"
_CURES: Mapping[str, str] = MappingProxyType(
    {"ENOSPC": _ROOM, "EDQUOT": _ROOM, "MemoryError": _MEMORY, "ResourceExhaustedError": _MEMORY}
)
"""Kind of an error (see `error_kind`) -> what to do."""

_BEFORE = (
    "nothing of this software had begun at {}. Correct the job's configuration, or install or "
    "allow (`surgagg deploy kit`) there what it names."
)
_SITE_FAILED = (
    r"Failing job {job}"
    r"(?: due to reported failure from |: terminal outcome unavailable from )([^\s:]+)"
)
"""How FLARE's server says in its log whose process of a job ended badly."""


_KEPT = 250


class Party(NamedTuple):
    """Where the server or a site says what happened: FLARE's error log of the job, its notes."""

    log: Path
    notes: Path | None = None


@dataclass(frozen=True)
class Failure:
    """Why a run failed.

    Attributes:
        reason: Lines: who, why, what to do, and the logs to read; empty where nobody says anything.
        final: Whether another try would end the same way.
    """

    reason: str
    final: bool


def parties(workspaces: Mapping[str, Path], job: str, log: str) -> dict[str, Party]:
    """The parties of a job by their FLARE workspaces, in which `log` is the error log."""
    return {who: Party(at / log, at / notes_file(job)) for who, at in workspaces.items()}


def explain(server: Path | None, known: Mapping[str, Party], lost: Collection[str] = ()) -> Failure:
    """Find out why a run did not go on.

    Parties at hand speak for themselves, apart from sites that have answered again since. Then come
    results that the server could not use after the last whole round, and why it ended the run.
    Where neither it nor a site says anything, the end of FLARE's own log is shown as it is, of who
    is lost, and of a party at which nothing of this software had begun.

    Args:
        server: The server's folder of the job, with the record; None: it is not at hand.
        known: Party (`SERVER` or a site) -> its log and notes, as far as at hand.
        lost: Parties whose process ended, see `lost_processes`. Where the server ended the run by
            itself, that is the reason, and else nobody is blamed for what came of the loss.
    """
    events = [] if server is None else read_events(server)
    failed = next((event for event in events if event["event"] == "failed"), None)
    lost = () if failed else lost
    before, now = refusals(events)
    recovered = {event["site"] for event in before} - {event["site"] for event in now}
    noted = {who: error for who in sorted(known) if (error := _last_error(known[who].notes))}
    own = {who: noted[who] for who in noted if who in lost or not (lost or who in recovered)}
    lines = []
    for who, error in own.items():
        lines += [
            _told(f"{who}: {error['reason']}", error),
            f"The log of {who} is {known[who].notes}",
        ]
    for event in now:
        if not (failed and event["site"] in own and event["reason"] in failed["reason"]):
            lines.append(f"{event['site']}, {_stage(event)}: {event['reason']}")
    if failed:
        ended = _told(failed["reason"], failed)
        lines.append(f"The server ended the run: {ended}" if lines else ended)
        if failed.get("kind") and SERVER in known:
            lines.append(f"The log of {SERVER} is {known[SERVER].log}")
    begun = {SERVER for _ in events[:1]} | {e["site"] for e in events if e["event"] == "declared"}
    asked = () if own or failed else {*lost, *(known.keys() - begun)}
    ends = {who: end for who in sorted(asked) if who in known and (end := tail(known[who].log))}
    never = sorted(ends.keys() - begun)
    if never:
        lines.append(_BEFORE.format(", ".join(never)))
    lines += [f"The log of {who} is {known[who].log}, and ends with\n{ends[who]}" for who in ends]
    if lost:
        where = " or ".join("the server" if who == SERVER else who for who in sorted(lost))
        unknown = ", and nothing at hand says why. Was it killed, or could it not load the job?"
        lines.insert(0, f"a process at {where} ended{'.' if own or ends else unknown}")
    checked = all(e["event"] == "refused" and e.get("task") == CHECK_TASK for e in now)
    # Before the first round, and not for a site that failed.
    at_once = checked and failed is not None and not failed.get("began", True)
    return Failure("\n".join(lines), bool(never) or at_once)


def lost_processes(job: str, server: Path | None, service: Path | None) -> list[str]:
    """Parties of which one's process of a deployed job ended badly.

    Args:
        job: Its id.
        server: The server's folder of it; None: it is not at hand. Its record ends with a line
            unless the server's own process ended, and says then who owed a result.
        service: The server's workspace, where FLARE's log names the site; None likewise.
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
    """Results that were refused or did not come: until the last whole round, and after it."""
    rounds = [number for number, event in enumerate(events) if event["event"] == "round"]
    last = rounds[-1] if rounds else 0
    before, now = (
        [event for event in part if event["event"] in ("refused", "silent")]
        for part in (events[:last], events[last:])
    )
    return before, now


def tail(log: Path, count: int = 5) -> str:
    """Last lines of a log that are not empty; of one that is not there none."""
    lines = [line for line in _text(log).splitlines() if line.strip()]
    return "\n".join(map(_shortened, lines[-count:]))


def _shortened(text: str) -> str:
    """A long text without its middle: what failed stands at its ends."""
    return text if len(text) <= 2 * _KEPT else f"{text[:_KEPT]} ... {text[-_KEPT:]}"


def _text(log: Path) -> str:
    return log.read_text(encoding="utf-8", errors="replace") if log.is_file() else ""


def _last_error(notes: Path | None) -> dict[str, Any] | None:
    """The last error in a site's notes, its reason with what the site could not do."""
    errors = [line for line in json_lines(notes) if "kind" in line] if notes else []
    if not errors:
        return None
    last = errors[-1]
    what = "" if last["what"] == CANNOT_TAKE_PART else f"{last['what']}: "
    return {**last, "reason": _shortened(f"{what}{last['reason']}")}


def _stage(event: Mapping[str, Any]) -> str:
    task = event.get("task", "train")
    return f"round {event['round']}" if task == "train" else str(task)


def _told(text: str, error: Mapping[str, Any]) -> str:
    cure = _CURES.get(error.get("kind") or "")
    return f"{text.rstrip('.')}. {cure}." if cure else text
