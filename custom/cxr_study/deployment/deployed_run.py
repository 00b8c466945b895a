"""A job on a deployed system to its end: submitted, watched, continued, taken home."""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cxr_study.common.round_progress import RoundProgress, round_bars
from cxr_study.common.steps import Steps
from cxr_study.deployment import job_watch
from cxr_study.deployment.failure import explain
from cxr_study.deployment.flare_session import FlareSession, SessionError
from cxr_study.deployment.job_watch import End
from cxr_study.deployment.jobs_left import Rounds, copied, rounds_left
from cxr_study.jobs import job_folder
from cxr_study.runs.finished_run import SERVER, JobFailedError

_SITES_PATIENCE = 120.0
"""Seconds to wait for a job's sites; then FLARE decides whether it starts without."""


class DeployedRunError(JobFailedError):
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
    def trains(self) -> bool:
        """Whether the job trains a model."""
        return "num_rounds" in job_folder.knobs(self.job)

    @property
    def num_rounds(self) -> int:
        """Rounds to make; 0 where that is known at the server alone, or the job trains nothing."""
        return job_folder.typed(self.job).num_rounds if self.trains else 0

    @property
    def continues(self) -> list[str]:
        """Ids of the jobs that it goes on from, newest first."""
        named = job_folder.typed(self.job).continues
        return [job.strip() for job in named.split(",") if job.strip()]


def run(deployed: DeployedRun, session: FlareSession, steps: Steps) -> tuple[Path, ...]:
    """Run a job to its end. An interrupt aborts it; another one leaves it to itself.

    A job that broke after at least one whole round (a process was killed), or that the server lost,
    is continued by another one from the server's checkpoint, with the rounds that are missing,
    which the server knows; where only the test of its model is missing, that. One that was aborted
    by an admin, that was never started, or whose sites cannot take part, is not.

    Returns:
        The server's folders of the jobs that made it, oldest first. Of a job under which the server
        was restarted there is one where its workspace is at hand.

    Raises:
        DeployedRunError: It did not end well, or the server is gone.
        SessionError: The server refuses it.
    """
    job, rounds = deployed.job, Rounds(0, deployed.num_rounds)
    left = deployed.continues  # jobs that left a model, or may have, newest first
    jobs, servers = [], []
    for attempt in itertools.count():
        try:
            job_id = _submit(session, job, steps)
            jobs.append(job_id)
            end = _watch(deployed, session, job_id, rounds, steps)
            server, made = _download(deployed, session, end, jobs, steps)
        except SessionError as error:
            if not jobs:
                raise
            raise DeployedRunError(_left_alone(jobs, left, error)) from error
        if made is not None:
            rounds = made
        elif end.lost:
            rounds = Rounds(rounds.made + end.seen.rounds, rounds.planned)
        if made is not None or (end.lost and server is None and deployed.trains):
            left = [job_id, *left]
        if server is not None and (made is not None or end.completed):
            servers.append(server)
        if end.completed and (not deployed.trains or (made is not None and made.all)):
            break
        failure = explain(job_id, end, server, deployed.places)
        after = f" after {rounds}" if deployed.trains else ""
        reason = f"job {job_id} failed{after}: {failure.reason}"
        if failure.final or not left or attempt == deployed.retries:
            raise DeployedRunError(reason)
        steps.console.print(reason, markup=False, highlight=False, soft_wrap=True)
        job = _continued(deployed, left, attempt + 1)
    return tuple(servers)


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
    deployed: DeployedRun, session: FlareSession, job_id: str, rounds: Rounds, steps: Steps
) -> End:
    name = "train" if deployed.trains else "run"
    with (
        steps.step(name, alone=False) as said,
        round_bars(steps.console, transient=True) as bars,
    ):
        bar = RoundProgress(bars, "training", rounds.planned, rounds.made)
        try:
            end = job_watch.watch(
                session,
                job_id,
                lambda now: bar.show(rounds.made + now.rounds, now.best, now.stopped),
                server=deployed.places.get("server"),
            )
        except (KeyboardInterrupt, SystemExit):
            with steps.step("abort", alone=False):
                session.abort(job_id)
            raise
        said += end.told(rounds.made)
    return end


def _left_alone(jobs: Sequence[str], left: Sequence[str], error: SessionError) -> str:
    job_id = jobs[-1]
    may_have_left = ",".join(dict.fromkeys([job_id, *left]))
    return (
        f"{error}\nJob {job_id} is left to itself: it may have ended, go on, or begin by itself. "
        "Once the server answers, look with list_jobs in the admin console, take home with "
        f"download_job {job_id} what has completed, and go on with what has failed or was lost: "
        f"the same command with another --out, --set continues={may_have_left} and "
        "--set num_rounds=0"
    )


def _download(
    deployed: DeployedRun, session: FlareSession, end: End, jobs: Sequence[str], steps: Steps
) -> tuple[Path | None, Rounds | None]:
    """The server's folder of the last job, and the rounds that are made, as far as at hand."""
    if end.lost:
        server = copied(deployed.places, jobs[-1], deployed.folder)
        return server, rounds_left(server, jobs)
    with steps.step("download", "models and records") as said:
        server = session.download(jobs[-1], deployed.folder) / SERVER
        if rounds := rounds_left(server, jobs):
            said.append(str(rounds))
    return server, rounds


def _continued(deployed: DeployedRun, left: Sequence[str], attempt: int) -> Path:
    """Job folder that goes on from the first of some jobs that left a model."""
    target = deployed.folder / f"continued-{attempt}"
    job_folder.copy(
        deployed.job,
        target,
        sites=job_folder.sites(deployed.job),
        settings={"continues": ",".join(left), "num_rounds": 0},
    )
    return target
