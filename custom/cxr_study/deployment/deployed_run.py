"""A job on a deployed system to its end: submitted, watched, continued, taken home."""

from __future__ import annotations

import itertools
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from cxr_study import job_folder, results
from cxr_study.deployment import job_watch
from cxr_study.deployment.failure import explain
from cxr_study.deployment.flare_session import FlareSession
from cxr_study.deployment.job_watch import End, Progress
from cxr_study.deployment.steps import Steps
from cxr_study.finished_run import SERVER
from cxr_study.round_progress import RoundProgress, round_bars
from surgical_aggregation import lineage
from surgical_aggregation.checkpoint import load
from surgical_aggregation.persistor import LAST_FILE

_SITES_PATIENCE = 120.0
"""Seconds to wait for a job's sites; then FLARE decides whether it starts without."""


class DeployedRunError(RuntimeError):
    """A job did not end well; the message holds the reason and the log to read."""


@dataclass(frozen=True)
class DeployedRun:
    """A job to run on a deployed system.

    Attributes:
        job: Job folder, as it is submitted.
        folder: Folder for what is downloaded, one folder per job, and for jobs that continue it.
        retries: How often a job that broke is continued.
        places: Party -> its FLARE workspace, where they are at hand; see `failure.explain`.
    """

    job: Path
    folder: Path
    retries: int = 3
    places: Mapping[str, Path] = field(default_factory=dict)

    @property
    def num_rounds(self) -> int:
        """Rounds to make; 0 for a job that trains nothing."""
        return int(str(job_folder.knobs(self.job).get("num_rounds", 0)))


def run(deployed: DeployedRun, session: FlareSession, steps: Steps) -> tuple[Path, ...]:
    """Run a job to its end. An interrupt aborts it; another one leaves it to itself.

    A job that broke after at least one whole round (a process was killed, the server restarted) is
    continued by another one from the server's checkpoint, with the rounds that are missing. One
    that was aborted by an admin, that was never started, or whose site cannot take part, is not.

    Returns:
        The server's folders of the jobs that made it, oldest first. Of a job under which the server
        was restarted there is one where its workspace is at hand.

    Raises:
        DeployedRunError: It did not end well.
        SessionError: The server refuses it, or is gone.
    """
    job, made, newest = deployed.job, 0, ""
    servers = []
    for attempt in itertools.count():
        job_id = _submit(session, job, steps)
        end = _watch(deployed, session, job_id, made, steps)
        server = _download(deployed, session, end, job_id, steps)
        rounds = _rounds_made(server, end)
        if rounds:
            newest = job_id
        if server is not None and (rounds or end.completed):
            servers.append(server)
        made += rounds
        stopped = end.seen.stopped if server is None else results.stopped_early(server)
        whole = stopped or made >= deployed.num_rounds
        if end.completed and whole:
            break
        failure = explain(job_id, end, server, deployed.places)
        after = f" after {made} of {deployed.num_rounds} rounds" if deployed.num_rounds else ""
        reason = f"job {job_id} failed{after}: {failure.reason}"
        if failure.final or not newest or whole or attempt == deployed.retries:
            raise DeployedRunError(reason)
        steps.console.print(reason, markup=False, highlight=False, soft_wrap=True)
        job = _continued(deployed, newest, made, attempt + 1)
    return tuple(servers)


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
        said += _told(end)
    if not end.completed:
        server = None if end.lost else session.download(job_id, downloads) / SERVER
        reason = explain(job_id, end, server, places).reason
        raise DeployedRunError(f"job {job_id} failed: {reason}")


def _submit(session: FlareSession, job: Path, steps: Steps) -> str:
    """Submit a job when its sites are there."""
    sites = set(job_folder.sites(job))
    with steps.step("submit") as said:
        deadline = time.monotonic() + _SITES_PATIENCE
        if missing := sites - session.sites():
            said.append(f"waited for {', '.join(sorted(missing))}")
        while sites - session.sites() and time.monotonic() < deadline:
            time.sleep(job_watch.POLL)
        job_id = session.submit(job)
        said.append(f"{session.kit.name}: job {job_id}")
    return job_id


def _watch(
    deployed: DeployedRun, session: FlareSession, job_id: str, made: int, steps: Steps
) -> End:
    name = "train" if deployed.num_rounds else "run"
    with (
        steps.step(name, alone=False) as said,
        round_bars(steps.console, transient=True) as bars,
    ):
        bar = RoundProgress(bars, "training", deployed.num_rounds, made)
        try:
            end = job_watch.watch(
                session,
                job_id,
                lambda now: bar.show(made + now.rounds, now.best, now.stopped),
                server=deployed.places.get("server"),
            )
        except (KeyboardInterrupt, SystemExit):
            with steps.step("abort", alone=False):
                session.abort(job_id)
            raise
        said += _told(end, made)
    return end


def _told(end: End, made: int = 0) -> list[str]:
    """How a job ended, in a few words."""
    told = ["the server was restarted" if end.lost else end.meta["status"]]
    if end.seen.rounds:
        told.append(f"{made + end.seen.rounds} rounds seen")
    if end.seen.best is not None:
        told.append(f"best validation BCE {end.seen.best['value']:.4f}")
    return told


def _download(
    deployed: DeployedRun, session: FlareSession, end: End, job_id: str, steps: Steps
) -> Path | None:
    """The server's folder of a job; None where it cannot be had.

    FLARE gives away nothing of a job that it takes to be running.
    """
    if not end.lost:
        with steps.step("download", "models and records"):
            return session.download(job_id, deployed.folder) / SERVER
    if "server" not in deployed.places:
        return None
    target = deployed.folder / job_id / SERVER
    left = deployed.places["server"] / job_id
    if not left.is_dir():  # it had not begun
        return None
    # Files that come and go while its process ends are not needed.
    shutil.copytree(left, target, ignore=shutil.ignore_patterns(".*", "*.tmp"))
    return target


def _rounds_made(server: Path | None, end: End) -> int:
    """Whole rounds of a job that are on the server's disk, by the best that is known of them."""
    last = None if server is None else server / "models" / LAST_FILE
    if last is None or not last.is_file():
        return end.seen.rounds if end.lost else 0
    manifest = load(last).manifest
    return int(manifest["round"]) - lineage.first_round(manifest)


def _continued(deployed: DeployedRun, job_id: str, made: int, attempt: int) -> Path:
    """Job folder that goes on from another job."""
    target = deployed.folder / f"continued-{attempt}"
    job_folder.copy(
        deployed.job,
        target,
        sites=job_folder.sites(deployed.job),
        settings={"continues": job_id, "num_rounds": deployed.num_rounds - made},
    )
    return target
