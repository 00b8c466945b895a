"""Submit, monitor, continue and download a job on a deployed system."""

from __future__ import annotations

import itertools
import shutil
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from cxr_study.common.progress import RoundProgress, Steps, round_bars
from cxr_study.deployment import job_watch
from cxr_study.deployment.flare_session import FlareSession, SessionError
from cxr_study.deployment.job_failure import Workspaces, explain
from cxr_study.deployment.job_watch import End, Progress
from cxr_study.jobs import job_folder
from cxr_study.runs.finished_run import SERVER, JobFailedError
from surgical_aggregation.checkpoints import continuation
from surgical_aggregation.checkpoints.checkpoint import load
from surgical_aggregation.server.models.model_files import LAST_FILE

_SITES_PATIENCE = 120.0
"""Seconds to wait for a job's sites; then FLARE decides whether it starts without."""


class DeployedRunError(JobFailedError):
    """A job on a deployed system did not end well."""


@dataclass(frozen=True)
class DeployedRun:
    """A job to run on a deployed system.

    Attributes:
        job: Job folder, as it is submitted.
        folder: Folder for the downloads, one per job, and for jobs that continue it.
        retries: How often a job that broke is continued.
        workspaces: Of the parties, as far as at hand.
    """

    job: Path
    folder: Path
    retries: int = 3
    workspaces: Workspaces = field(default_factory=dict)

    @property
    def trains(self) -> bool:
        """Whether the job trains a model."""
        return "num_rounds" in job_folder.read_settings(self.job)

    @property
    def num_rounds(self) -> int:
        """Rounds to make; 0 where only the server knows that, or the job trains nothing."""
        return job_folder.typed(self.job).num_rounds if self.trains else 0

    @property
    def continues(self) -> list[str]:
        """Ids of the jobs that it continues, newest first."""
        named = job_folder.typed(self.job).continues
        return [job.strip() for job in named.split(",") if job.strip()]


@dataclass(frozen=True)
class Rounds:
    """Rounds that a run's jobs have made, as far as known, and are to make; 0: not known."""

    made: int
    planned: int

    @property
    def all(self) -> bool:
        """Whether none is missing."""
        return self.made == self.planned

    def __str__(self) -> str:
        return f"{self.made} of {self.planned or 'an unknown number of'} rounds"


def run(deployed: DeployedRun, session: FlareSession, steps: Steps) -> tuple[Path, ...]:
    """Run a job to its end. An interrupt aborts it; another one leaves it to itself.

    A job that broke after at least one whole round (a process was killed), or that the server lost,
    is continued by another one from the server's checkpoint, with the missing rounds, which the
    server knows; where only the test of its model is missing, that. A job that was aborted by an
    admin, that was never started, or whose sites cannot take part, is not.

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
            end = _watch(deployed, session, [job_id, *left], rounds, steps)
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
        failure = explain(job_id, end, server, deployed.workspaces)
        after = f" after {rounds}" if deployed.trains else ""
        reason = f"job {job_id} failed{after}: {failure.reason}"
        if failure.final or not left or attempt == deployed.retries:
            raise DeployedRunError(reason)
        _say(steps, reason)
        job = _continued(deployed, left, attempt + 1)
    return tuple(servers)


def attend(
    session: FlareSession, job_id: str, downloads: Path, workspaces: Workspaces, steps: Steps
) -> None:
    """Wait for the end of a job that somebody submitted. An interrupt leaves it to itself.

    If it fails, its results are downloaded: the reason is in them.

    Raises:
        DeployedRunError: It did not end well.
    """

    def show(now: Progress) -> None:
        best = f", best validation BCE {now.best['value']:.4f}" if now.best else ""
        steps.console.print(f"round {now.rounds}{best}", highlight=False)

    with steps.step("watch", alone=False) as said:
        say = partial(_say, steps)
        end = job_watch.watch(session, job_id, show, say, server=workspaces.get("server"))
        said += end.told()
    if not end.completed:
        server = None if end.lost else session.download(job_id, downloads) / SERVER
        reason = explain(job_id, end, server, workspaces).reason
        raise DeployedRunError(f"job {job_id} failed: {reason}")


def rounds_left(server: Path | None, jobs: Collection[str]) -> Rounds | None:
    """Rounds that the jobs of a run have made, by the last model that the last of them left.

    Rounds of a run that they continue do not count. None where there is no model, or the server's
    folder of that job is not at hand.
    """
    if server is None or not (last := server / "models" / LAST_FILE).is_file():
        return None
    manifest = load(last).manifest
    earlier = [past["rounds"][0] for past in manifest.get("history", []) if past["job"] in jobs]
    made = int(manifest["round"]) - min(earlier, default=continuation.first_round(manifest))
    return Rounds(made, made + continuation.missing_rounds(manifest))


def copied(workspaces: Workspaces, job_id: str, folder: Path) -> Path | None:
    """Copy the server's folder of a job that FLARE takes to be running, and so does not give away.

    Returns:
        The copy in `folder`, laid out as a download; None where the server's workspace is not at
        hand, or the job had not begun.
    """
    if "server" not in workspaces or not (left := workspaces["server"] / job_id).is_dir():
        return None
    target = folder / job_id / SERVER
    # Files that come and go while its process ends are not needed.
    shutil.copytree(left, target, ignore=shutil.ignore_patterns(".*", "*.tmp"))
    return target


def _submit(session: FlareSession, job: Path, steps: Steps) -> str:
    """Submit a job when its sites are connected."""
    sites = set(job_folder.sites(job))
    with steps.step("submit") as said:
        deadline = time.monotonic() + _SITES_PATIENCE
        if missing := ", ".join(sorted(sites - session.sites())):
            _say(steps, f"waiting up to {_SITES_PATIENCE:.0f} s for {missing}: not connected")
            said.append(f"waited for {missing}")
        while sites - session.sites() and time.monotonic() < deadline:
            time.sleep(job_watch.POLL)
        job_id = session.submit(job)
        said.append(f"{session.kit.name}: job {job_id}")
    return job_id


def _watch(
    deployed: DeployedRun, session: FlareSession, jobs: Sequence[str], rounds: Rounds, steps: Steps
) -> End:
    """Watch the first of some jobs; the others left a model."""
    name = "train" if deployed.trains else "run"
    with steps.step(name, alone=False) as said, round_bars(steps.console, transient=True) as bars:
        bar = RoundProgress(bars, "training", rounds.planned, rounds.made)

        def show(now: Progress) -> None:
            bar.show(rounds.made + now.rounds, now.best, now.stopped)

        server = deployed.workspaces.get("server")
        try:
            end = job_watch.watch(session, jobs[0], show, partial(_say, steps), server=server)
        except (KeyboardInterrupt, SystemExit):
            with steps.step("abort", alone=False):
                session.abort(jobs[0])
            made_none = bars.tasks[0].completed == rounds.made
            _say(steps, _aborted(jobs[0], jobs[1:] if made_none else jobs))
            raise
        said += end.told(rounds.made)
    return end


def _aborted(job_id: str, left: Sequence[str]) -> str:
    """What is said of a job that an interrupt aborted; `left`: jobs that left a model."""
    again = f"job {job_id} was aborted. Go on: the same command with another --out"
    if not left:
        return f"{again} (it was not seen to make a round, which it could go on from)"
    continues = f"--set continues={','.join(left)} and --set num_rounds=0"
    return f"{again}, {continues} (the rounds that are missing)"


def _say(steps: Steps, text: str) -> None:
    steps.console.print(text, markup=False, highlight=False, soft_wrap=True)


def _left_alone(jobs: Sequence[str], left: Sequence[str], error: SessionError) -> str:
    job_id = jobs[-1]
    may_have_left = ",".join(dict.fromkeys([job_id, *left]))
    return (
        f"{error}\nJob {job_id} is left to itself: it may have ended, go on, or begin by itself. "
        "Once the server answers, look with list_jobs in the admin console, download with "
        f"download_job {job_id} what has completed, and go on with what has failed or was lost: "
        f"the same command with another --out, --set continues={may_have_left} and "
        "--set num_rounds=0"
    )


def _download(
    deployed: DeployedRun, session: FlareSession, end: End, jobs: Sequence[str], steps: Steps
) -> tuple[Path | None, Rounds | None]:
    """The server's folder of the last job, and the rounds that are made, as far as at hand."""
    if end.lost:
        server = copied(deployed.workspaces, jobs[-1], deployed.folder)
        return server, rounds_left(server, jobs)
    with steps.step("download", "models and records") as said:
        server = session.download(jobs[-1], deployed.folder) / SERVER
        rounds = rounds_left(server, jobs)
        said += [str(rounds)] * (rounds is not None)
    return server, rounds


def _continued(deployed: DeployedRun, left: Sequence[str], attempt: int) -> Path:
    """Job folder that continues the first of some jobs that left a model."""
    target = deployed.folder / f"continued-{attempt}"
    job_folder.copy(
        deployed.job,
        target,
        sites=job_folder.sites(deployed.job),
        settings={"continues": ",".join(left), "num_rounds": 0},
    )
    return target
