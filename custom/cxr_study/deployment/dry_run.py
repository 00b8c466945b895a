"""Ask the sites of a job whether they can take part; nothing is trained."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from cxr_study.common.progress import Steps
from cxr_study.deployment import job_watch
from cxr_study.deployment.flare_session import FlareSession, SessionError
from cxr_study.deployment.job_failure import explain
from cxr_study.jobs.job import Job
from cxr_study.runs.finished_run import SERVER
from cxr_study.runs.job_results import read_events
from surgical_aggregation.wire.headers import CHECK_TASK


def ask(
    job: Path, session: FlareSession, folder: Path, steps: Steps
) -> tuple[list[dict[str, Any]], str | None]:
    """Submit a job with `check_only` set, and see it to its end.

    Returns:
        What the record says of each site: its line "declared" (see `RunRecord`), or "silent"; and
        why the job failed, None where enough sites can take part.

    Raises:
        SessionError: A site of the job is not connected, or the server refuses the job.
    """
    if missing := sorted(set(Job.from_folder(job).sites) - session.sites()):
        raise SessionError(
            f"all sites of the job must be connected; {', '.join(missing)} is not. Start it there."
        )
    with steps.step("check", alone=False) as said:
        job_id = session.submit(job)
        say = partial(steps.console.print, markup=False, highlight=False, soft_wrap=True)
        end = job_watch.watch(session, job_id, lambda _: None, say)
        said += [f"job {job_id}", *end.told()]
    server = None if end.lost else session.download(job_id, folder) / SERVER
    events = [] if server is None else read_events(server)
    told = [
        event
        for event in events
        if event["event"] == "declared"
        or (event["event"] == "silent" and event["task"] == CHECK_TASK)
    ]
    failed = None if end.completed else explain(job_id, end, server, {}).reason
    return sorted(told, key=lambda event: event["site"]), failed


def told(line: Mapping[str, Any]) -> str:
    """A site's line of the record, in words."""
    versions, free, days = (line.get(n) for n in ("versions", "free_disk", "certificate_days"))
    facts = [f"{package} {version}" for package, version in (versions or {}).items()]
    facts += [] if free is None else [f"{free / 1e9:,.1f} GB free"]
    facts += [] if days is None else [f"certificate for {days} days"]
    can = f"cannot take part: {line['reason']}" if line["reason"] else "can take part"
    return f"{can} ({', '.join(facts)})" if facts else can
