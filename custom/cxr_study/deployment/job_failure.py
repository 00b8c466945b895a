"""Why a job failed on a deployed system, by the logs at hand; FLARE shows an admin none of it."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cxr_study.deployment.job_watch import End
from cxr_study.runs import flare_log, run_failure
from cxr_study.runs.flare_log import LoggedError
from surgical_aggregation.site.local_notes import notes_file

ABORTED = "FINISHED:ABORTED"
NEVER_RAN = ("FINISHED:FAILED_TO_RUN", "FINISHED:CANT_SCHEDULE", "FINISHED:ABANDONED")

_SHOWN = 3
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
    return Failure(_by_logs(job_id, end, server, places, away) + told_away, final=False)


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


def _by_logs(
    job_id: str, end: End, server: Path | None, places: Mapping[str, Path], away: Collection[str]
) -> str:
    """Who could not do its part; where nobody says so, the party that was the first to complain."""
    logs: dict[str, run_failure.Logs] = {
        party: (place / job_id / "error_log.txt", flare_log.site_notes(place, job_id))
        for party, place in places.items()
        if party not in away
    }
    if server is not None:
        logs["server"] = (server / "error_log.txt",)
    lost = _lost_site(job_id, places)
    errors = {
        party: found
        for party, files in logs.items()
        if (found := flare_log.errors(*files)) and not (lost and _after(found, party, lost))
    }
    sites_own = "" if places else _where_sites_say(job_id, server)
    if why := run_failure.why(server, {party: logs[party] for party in errors}, away):
        return f"{why}{sites_own}"
    if not errors:
        return f"{end.meta['status']}: {_silent_end(lost, places)}{sites_own}"
    party = min(errors, key=lambda name: errors[name][0].time)
    said = "\n".join(f"  {run_failure.shortened(e.text)}" for e in errors[party][-_SHOWN:])
    ended = f"{reason}\n" if (reason := run_failure.ended(server)) else ""
    return f"{ended}The log of {party} is {logs[party][0]}, and ends with\n{said}{sites_own}"


def _where_sites_say(job_id: str, server: Path | None) -> str:
    """Where to read what sites say that are not at hand."""
    refused = run_failure.refused(server)
    who = f": {', '.join(refused)}" if refused else ""
    return (
        f"\nA site's own log is <its workspace>/{job_id}/error_log.txt, and its notes "
        f"<its workspace>/{notes_file(job_id)}, at the site{who}."
    )


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
    return (
        f"a process {where} ended, and no log at hand says why. Was it killed, or could it not "
        f"load the job?{known}"
    )
