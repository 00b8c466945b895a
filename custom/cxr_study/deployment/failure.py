"""Why a job failed on a deployed system, by the logs at hand; FLARE shows an admin none of it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cxr_study import flare_log
from cxr_study.deployment.job_watch import End
from cxr_study.flare_log import LoggedError
from cxr_study.run_events import read_events
from surgical_aggregation.local_notes import notes_file

ABORTED = "FINISHED:ABORTED"
NEVER_RAN = ("FINISHED:FAILED_TO_RUN", "FINISHED:CANT_SCHEDULE", "FINISHED:ABANDONED")

_SHOWN = 3
_KEPT = 250
_LOST_SITE = (
    r"(?P<time>[-\d]+ [\d:,]+) - .*Failing job {job} due to reported failure from (?P<site>\S+):"
)


@dataclass(frozen=True)
class Failure:
    """What is known of a failed job.

    Attributes:
        reason: Who failed, why, the log to read, and its last errors.
        final: Whether another try would end the same way.
    """

    reason: str
    final: bool


def explain(job_id: str, end: End, server: Path | None, places: Mapping[str, Path]) -> Failure:
    """Find out why a job did not end well.

    Args:
        job_id: Its id.
        end: How it ended.
        server: The server's folder of its results; None: they could not be downloaded.
        places: Party ("server" or a site) -> its FLARE workspace, where they are at hand: in a
            POC all, elsewhere none.
    """
    meta = end.meta
    away = _sites_that_cannot(job_id, places)
    told_away = "".join(f"\n{reason}" for reason in away.values())
    if away and len(_sites(meta)) - len(away) < int(meta["min_clients"]):
        return Failure(told_away.lstrip(), final=True)
    if end.lost:
        return Failure(
            "the server was restarted under it, and takes it to be running for ever.", final=False
        )
    if meta["status"] == ABORTED:
        return Failure("it was aborted by an admin.", final=True)
    if meta["status"] in NEVER_RAN:
        details = meta.get("job_deploy_detail") or meta.get("schedule_history") or []
        wrong = [detail for detail in details if not detail.endswith(": OK")] or [meta["status"]]
        return Failure(f"it could not be started: {'; '.join(wrong)}", final=True)
    others = {party: place for party, place in places.items() if party not in away}
    reason = _by_logs(job_id, meta["status"], server, others)
    return Failure(reason + told_away, final=False)


def _sites(meta: Mapping[str, Any]) -> set[str]:
    """Names of a job's sites."""
    return {party for parties in meta["deploy_map"].values() for party in parties} - {"server"}


def _sites_that_cannot(job_id: str, places: Mapping[str, Path]) -> dict[str, str]:
    """Site that cannot take part -> its reason, which would be the same another time."""
    notes = {site: flare_log.site_notes(place, job_id) for site, place in places.items()}
    reasons = {site: why for site, path in notes.items() if (why := flare_log.site_reason(path))}
    return {
        site: f"{site} cannot take part: {reason}\nIts notes are {notes[site]}"
        for site, reason in reasons.items()
    }


def _by_logs(job_id: str, status: str, server: Path | None, places: Mapping[str, Path]) -> str:
    """The party that was the first to complain, and what it said last."""
    logs = {
        party: [place / job_id / "error_log.txt", flare_log.site_notes(place, job_id)]
        for party, place in places.items()
    }
    if server is not None:
        logs["server"] = [server / "error_log.txt"]
    lost = _lost_site(job_id, places)
    errors = {
        party: found
        for party, files in logs.items()
        if (found := flare_log.errors(*files)) and not (lost and _after(found, party, lost))
    }
    sites_own = "" if places else (
        f"\nA site's own log is <its workspace>/{job_id}/error_log.txt, and its notes "
        f"<its workspace>/{notes_file(job_id)}, at the site."
    )  # fmt: skip
    if not errors:
        return f"{status}: {_silent_end(lost, places)}{sites_own}"
    party = min(errors, key=lambda name: errors[name][0].time)
    said = "\n".join(f"  {_shortened(error.text)}" for error in errors[party][-_SHOWN:])
    recorded = f"{reason}\n" if (reason := _recorded(server)) else ""
    return f"{recorded}The log of {party} is {logs[party][0]}, and ends with\n{said}{sites_own}"


def _shortened(text: str) -> str:
    """A text without its middle, where it is long: what failed stands at its ends."""
    return text if len(text) <= 2 * _KEPT else f"{text[:_KEPT]} ... {text[-_KEPT:]}"


def _recorded(server: Path | None) -> str | None:
    """Reason that the server itself ended the run for."""
    events = [] if server is None else read_events(server)
    return next((event["reason"] for event in events if event["event"] == "failed"), None)


def _lost_site(job_id: str, places: Mapping[str, Path]) -> re.Match[str] | None:
    """The server's note, with "site" and "time", that a site's process ended ill."""
    if "server" not in places:
        return None
    log = flare_log.read(places["server"] / "log.txt")
    return re.search(_LOST_SITE.format(job=re.escape(job_id)), log)


def _after(errors: Sequence[LoggedError], party: str, lost: re.Match[str]) -> bool:
    """Whether a party complained only because the process of another site had ended."""
    return party != lost["site"] and errors[0].time >= lost["time"]


def _silent_end(lost: re.Match[str] | None, places: Mapping[str, Path]) -> str:
    where = f"at {lost['site']}" if lost else "of the job"
    known = f" The server's log is {places['server'] / 'log.txt'}" if "server" in places else ""
    return f"a process {where} ended, and no log at hand says why. Was it killed?{known}"
