"""A job that somebody submitted, watched to its end."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from cxr_study.common.progress import Steps
from cxr_study.deployment import job_watch
from cxr_study.deployment.deployed_run import DeployedRunError
from cxr_study.deployment.failure import explain
from cxr_study.deployment.flare_session import FlareSession
from cxr_study.deployment.job_watch import Progress
from cxr_study.runs.finished_run import SERVER


def attend(
    session: FlareSession, job_id: str, downloads: Path, places: Mapping[str, Path], steps: Steps
) -> None:
    """Wait for the end of a job that somebody submitted. An interrupt leaves it to itself.

    Args:
        session: A session with its server.
        job_id: Its id.
        downloads: Folder for its results, if it fails: the reason is in them.
        places: See `DeployedRun`.
        steps: Where to say how far it is.

    Raises:
        DeployedRunError: It did not end well.
    """

    def show(now: Progress) -> None:
        best = f", best validation BCE {now.best['value']:.4f}" if now.best else ""
        steps.console.print(f"round {now.rounds}{best}", highlight=False)

    with steps.step("watch", alone=False) as said:
        end = job_watch.watch(session, job_id, show, server=places.get("server"))
        said += end.told()
    if not end.completed:
        server = None if end.lost else session.download(job_id, downloads) / SERVER
        reason = explain(job_id, end, server, places).reason
        raise DeployedRunError(f"job {job_id} failed: {reason}")
