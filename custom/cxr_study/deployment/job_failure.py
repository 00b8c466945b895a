"""Why a job failed on a deployed system, by the logs at hand, and how to go on by hand.

FLARE shows an admin none of it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cxr_study.deployment import job_queue
from cxr_study.deployment.at_hand import Workspaces
from cxr_study.deployment.job_watch import End
from cxr_study.runs import job_results, run_failure
from surgical_aggregation.site.local_notes import notes_file

ABORTED = "FINISHED:ABORTED"
NEVER_RAN = ("FINISHED:FAILED_TO_RUN", "FINISHED:CANT_SCHEDULE", "FINISHED:ABANDONED")
NOT_LOADED = "FINISHED:ABNORMAL"
"""A site's process ended while it loaded the job, or the server's was killed."""

_ILL_CONFIGURED = re.compile(
    "No module named|Can't load class|has parameters error|not in allow_list|not permitted to train"
)
"""Words of a reason that stays until somebody corrects the job, or what is allowed or installed."""

_SHOWN = 3
_LOST_SITE = (
    r"(?P<time>[-\d]+ [\d:,]+) - .*Failing job {job}"
    r"(?: due to reported failure from |: terminal outcome unavailable from )(?P<site>\S+):"
)
_LOST_SERVER = r"(?P<time>[-\d]+ [\d:,]+) - .*Job: {job} child process exit with return code"
_GIVEN = re.compile(
    r"return task to client\.  client_name: (\S+)  task_name: (\S+)   task_id: (\S+)"
)
_BACK = re.compile(r"got result from client \S+ for task: name=\S+, id=([-\w]+)")


@dataclass(frozen=True)
class JobFailure:
    """What is known of a failed job.

    Attributes:
        reason: Who failed, why, the log to read, and its last errors.
        final: Whether another try would end the same way.
    """

    reason: str
    final: bool


def explain(job_id: str, end: End, server: Path | None, workspaces: Workspaces) -> JobFailure:
    """Find out why a job did not end well.

    Args:
        job_id: Its id.
        end: How it ended.
        server: The server's folder of its results; None: they could not be downloaded.
        workspaces: As far as at hand: in a POC all, elsewhere none.
    """
    meta = end.meta
    away = _sites_that_cannot(job_id, workspaces)
    told_away = "".join(f"\n{reason}" for reason in away.values())
    if away and len(job_queue.sites(meta)) - len(away) < int(meta["min_clients"]):
        return JobFailure(told_away.lstrip(), final=True)
    if end.lost:
        return JobFailure(
            "the server was restarted under it, and takes it to be running for ever.", final=False
        )
    if meta["status"] == ABORTED:
        return JobFailure("it was aborted by an admin.", final=True)
    if meta["status"] in NEVER_RAN:
        return JobFailure(f"it could not be started: {not_started(meta)}", final=True)
    told = _by_logs(job_id, end, server, workspaces, away)
    useless = meta["status"] == NOT_LOADED or _ILL_CONFIGURED.search(told)
    made = end.seen.rounds or (server and job_results.rounds_run(server))
    final = run_failure.never_began(server) or bool(useless and not made)
    if not workspaces:
        told += _where_sites_say(job_id, server)
    return JobFailure(told + told_away, final)


def not_started(meta: Mapping[str, Any]) -> str:
    """Why a job in one of `NEVER_RAN` was not started, by what FLARE knows of it."""
    details = meta.get("job_deploy_detail") or job_queue.reasons(meta)
    return "; ".join(d for d in details if not d.endswith(": OK")) or str(meta["status"])


def _sites_that_cannot(job_id: str, workspaces: Workspaces) -> dict[str, str]:
    """Site that cannot take part -> its reason, which would be the same another time."""
    told = {}
    for site, workspace in workspaces.items():
        notes = run_failure.site_notes(workspace, job_id)
        if reason := run_failure.site_reason(notes):
            told[site] = f"{site} cannot take part: {reason}\nIts notes are {notes}"
    return told


def _by_logs(
    job_id: str, end: End, server: Path | None, workspaces: Workspaces, away: Collection[str]
) -> str:
    """Who could not do its part; where nobody says so, the party that complained first."""
    logs: dict[str, run_failure.Logs] = {
        party: (workspace / job_id / "error_log.txt", run_failure.site_notes(workspace, job_id))
        for party, workspace in workspaces.items()
        if party not in away
    }
    if server is not None:
        logs["server"] = (server / "error_log.txt",)
    lost = _lost_process(job_id, workspaces)
    errors = {
        party: found
        for party, files in logs.items()
        if (found := run_failure.logged_errors(*files))
        # Else it complained only because the process of another site had ended.
        and not (lost and party != lost[0] and found[0].time >= lost[1])
    }
    why = run_failure.why(server, {party: logs[party] for party in errors}, away)
    where = f"at {lost[0]}" if lost else _owing(server)
    if why:
        return f"a process {where} ended.\n{why}" if lost and lost[0] not in why else why
    if not errors:
        known = workspaces.get("server")
        return (
            f"{end.meta['status']}: a process {where} ended, and no log at hand says why. Was it "
            "killed, or could it not load the job?"
            + (f" The server's log is {known / 'log.txt'}" if known else "")
        )
    party = min(errors, key=lambda name: errors[name][0].time)
    said = "\n".join(f"  {run_failure.shortened(e.text)}" for e in errors[party][-_SHOWN:])
    ended = f"{reason}\n" if (reason := run_failure.ended(server)) else ""
    return f"{ended}The log of {party} is {logs[party][0]}, and ends with\n{said}"


def _where_sites_say(job_id: str, server: Path | None) -> str:
    """Where to read what sites say that are not at hand."""
    refused = run_failure.refused(server)
    who = f": {', '.join(refused)}" if refused else ""
    return (
        f"\nA site's own log is <its workspace>/{job_id}/error_log.txt, and its notes "
        f"<its workspace>/{notes_file(job_id)}, at the site{who}."
    )


def _lost_process(job_id: str, workspaces: Workspaces) -> tuple[str, str] | None:
    """Whose process of the job ended badly, by the server's service log, and when."""
    if "server" not in workspaces:
        return None
    log, job = run_failure.read_log(workspaces["server"] / "log.txt"), re.escape(job_id)
    if own := re.search(_LOST_SERVER.format(job=job), log):
        return "the server", own["time"]
    site = re.search(_LOST_SITE.format(job=job), log)
    return (site["site"], site["time"]) if site else None


def _owing(server: Path | None) -> str:
    """Where a process probably ended: at the sites that never gave back their last task."""
    log = run_failure.read_log(server / "log.txt") if server is not None else ""
    tasks = {site: (name, task) for site, name, task in _GIVEN.findall(log)}
    back = set(_BACK.findall(log))
    owing = {site: name for site, (name, task) in sorted(tasks.items()) if task not in back}
    if not owing:
        return "of the job"
    named = ", ".join(f"{site} ({name!r})" for site, name in owing.items())
    return f"of the job, by the server's log at {named}, which had a task and did not give it back,"


def resume(left: Sequence[str]) -> str:
    """How to go on by hand from the first of some jobs that left a model."""
    again = "Go on: submit the same job with another --out"
    if not left:
        return f"{again} (it was not seen to make a round, which it could go on from)"
    continues = f"--set continues={','.join(left)} and --set num_rounds=0"
    return f"{again}, {continues} (the rounds that are missing)"


def left_alone(job_id: str, left: Sequence[str], error: Exception) -> str:
    """What is said of a job whose server does not answer; `left`: see `resume`."""
    may_have_left = list(dict.fromkeys([job_id, *left]))
    return (
        f"{error}\nJob {job_id} is left to itself: it may have ended, go on, or begin by itself. "
        f"Once the server answers, watch it with surgagg deploy watch. {resume(may_have_left)}"
    )
