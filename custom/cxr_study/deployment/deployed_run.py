"""Submit, monitor, continue and download a job on a deployed system; or only ask its sites."""

from __future__ import annotations

import itertools
import json
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cxr_study.common.progress import RoundProgress, Steps, round_bars
from cxr_study.deployment import at_hand, job_watch
from cxr_study.deployment.at_hand import RoomError, Workspaces
from cxr_study.deployment.flare_session import PAUSES, FlareSession, SessionError, pauses
from cxr_study.deployment.job_watch import ABORTED, End, explain
from cxr_study.jobs import job_export
from cxr_study.jobs.job import Job
from cxr_study.runs.finished_run import (
    RESULTS,
    RUN_FILE,
    SERVER,
    SITES,
    JobFailedError,
    RunFolderError,
    read_breaks,
    read_site_files,
    write_facts,
)
from cxr_study.runs.job_results import read_events
from cxr_study.runs.run_rounds import Rounds, left_a_model, rounds_left
from surgical_aggregation.wire.headers import CHECK_TASK


class DeployedRunError(JobFailedError):
    """A job on a deployed system did not end well."""


@dataclass(frozen=True)
class DeployedRun:
    """A job to run on a deployed system.

    Attributes:
        folder: The run's: the job is its `job`, and there the run's facts and downloads go. Of a
            job that somebody else submitted, it is there once that has been downloaded.
        site_files: Folder of <site>.yaml; None: see `elsewhere`.
        elsewhere: Whether the sites' data is elsewhere; else it is that of the site files, or the
            phantom's.
        retries: How often a job that broke is continued.
        workspaces: Of the parties, as far as at hand.
        sites_timeout: Seconds to wait for a job's sites; then FLARE decides whether it starts
            without.
        pauses: Seconds before each job that continues another; the last again and again.
        aborts: Whether an interrupt aborts the job, or leaves it to itself.
    """

    folder: Path
    site_files: Path | None = None
    elsewhere: bool = True
    retries: int = 3
    workspaces: Workspaces = field(default_factory=dict)
    sites_timeout: float = 120.0
    pauses: Sequence[float] = PAUSES
    aborts: bool = True

    @property
    def job(self) -> Path:
        """Job folder, as it is submitted."""
        return self.folder / "job"

    @property
    def results(self) -> Path:
        """Folder of the downloads, one per job, and of jobs that continue it."""
        return self.folder / RESULTS

    @property
    def trains(self) -> bool:
        """Whether the job trains a model, as far as known."""
        return not self.job.is_dir() or Job.from_folder(self.job).trains

    @property
    def num_rounds(self) -> int:
        """Rounds to make; 0 where only the server knows that, or the job trains nothing."""
        known = self.job.is_dir() and self.trains
        return Job.from_folder(self.job).at_server.num_rounds if known else 0

    def left(self, jobs: Sequence[str]) -> list[str]:
        """Ids of jobs that left a model, newest first: `jobs`, and those that it continues."""
        named = Job.from_folder(self.job).at_server.continues if self.job.is_dir() else ""
        return [*jobs, *(job.strip() for job in named.split(",") if job.strip())]

    def how_to_resume(self, jobs: Sequence[str]) -> str:
        """How to go on by hand, from the first of what is `left`."""
        again = "Go on: submit the same job with another --out"
        if not (left := self.left(jobs)):
            return f"{again} (it was not seen to make a round, which it could go on from)"
        continues = f"--set continues={','.join(left)} and --set num_rounds=0"
        return f"{again}, {continues} (the rounds that are missing)"

    def left_alone(self, job_id: str, jobs: Sequence[str], error: Exception) -> str:
        """What is said of a job whose server does not answer; `jobs`: that left a model."""
        return (
            f"{error}\nJob {job_id} is left to itself: it may have ended, go on, or begin by "
            "itself. Once the server answers, watch it with surgagg deploy watch. "
            f"{self.how_to_resume(list(dict.fromkeys([job_id, *jobs])))}"
        )

    def note(self, jobs: Sequence[str], *broke: str) -> None:
        """Write the ids of its jobs to its facts, and how one broke."""
        breaks = [*read_breaks(self.folder), *broke]
        write_facts(self.folder, self.site_files, jobs, elsewhere=self.elsewhere, breaks=breaks)

    @classmethod
    def noted(cls, folder: Path, **more: Any) -> tuple[DeployedRun, list[str]]:
        """The run of which a folder has the facts, and the ids of its jobs; `more`: the others.

        Raises:
            RunFolderError: It is no run on a deployed system.
        """
        facts = json.loads((folder / RUN_FILE).read_text(encoding="utf-8"))
        if not facts.get("jobs"):
            raise RunFolderError(
                f"the folder of a run on a deployed system is needed; that in {folder} was made in "
                "FLARE's simulator."
            )
        return cls(folder, read_site_files(folder), facts["elsewhere"], **more), facts["jobs"]


def run(
    deployed: DeployedRun, session: FlareSession, steps: Steps, begun: Sequence[str] = ()
) -> None:
    """Run a job to its end; `begun`: ids of its jobs so far, of which the last is watched first.

    An interrupt aborts the job where that is wanted; another one leaves it to itself.

    A job that broke after at least one whole round (a process was killed), or that the server lost,
    is continued by another one from the server's checkpoint, with the missing rounds, which the
    server knows; where only the test of its model is missing, that. A job that was aborted by an
    admin, that was never started, or whose sites cannot take part, is not. Before another job there
    is a pause, and as long as disks at hand are full it is not submitted.

    The ids are in the run's facts from when a job is submitted on; at the end those of the jobs
    that made it, oldest first. Of a job under which the server was restarted there are results
    where its workspace is at hand. So are sites' own files of the last job.

    Raises:
        DeployedRunError: It did not end well, or the server is gone.
        RoomError: A disk at hand is full; nothing was submitted.
        SessionError: The server refuses it.
    """
    jobs, rounds = [*begun], Rounds(0, deployed.num_rounds)
    left = jobs[-2::-1]  # jobs that left a model, or may have, newest first
    servers = [deployed.results / job / SERVER for job in jobs[:-1]]
    servers = [server for server in servers if left_a_model(server)]
    job, before = deployed.job, pauses(deployed.pauses)
    for attempt in itertools.count():
        try:
            if attempt or not begun:
                jobs.append(_submit(deployed, session, job, steps))
                deployed.note(jobs)
            end = _watch(deployed, session, [jobs[-1], *left], rounds, steps)
            server, made = _download(deployed, session, end, jobs, steps)
        except SessionError as error:
            if not jobs:
                raise
            raise DeployedRunError(deployed.left_alone(jobs[-1], left, error)) from error
        if made is not None:
            rounds = made
        elif end.lost:
            rounds = Rounds(rounds.made + end.seen.rounds, rounds.planned)
        if made is not None or (end.lost and server is None and deployed.trains):
            left = [jobs[-1], *left]
        if server is not None and (made is not None or end.completed):
            servers.append(server)
        if end.completed and (not deployed.trains or (made is not None and made.all)):
            break
        failure = explain(jobs[-1], end, server, deployed.workspaces)
        after = f" after {rounds}" if deployed.trains else ""
        reason = f"job {jobs[-1]} failed{after}: {failure.reason}"
        goes_on = bool(deployed.left(left))
        if end.meta["status"] == ABORTED:
            reason += f" {deployed.how_to_resume(left)}"
        if not (failure.final or goes_on) and deployed.trains:
            reason += " No whole round was made to go on from: submit it again."
        if failure.final or not goes_on or attempt == deployed.retries:
            raise DeployedRunError(reason)
        if not deployed.job.is_dir():
            how = deployed.how_to_resume(left)
            raise DeployedRunError(f"{reason}\nIts job folder is not at hand. {how}")
        steps.say(reason)
        deployed.note(jobs, reason.partition("\n")[0])
        _pause(deployed, session, next(before), reason, steps)
        job = _continued(deployed, left, len(jobs))
    made_by = [server.parent.name for server in servers]
    deployed.note(made_by)
    for site, workspace in deployed.workspaces.items():
        if (kept := workspace / "checkpoints" / made_by[-1]).is_dir() and site != "server":
            shutil.copytree(kept, deployed.folder / SITES / site, dirs_exist_ok=True)


def check(
    job: Path, session: FlareSession, folder: Path, steps: Steps
) -> tuple[list[dict[str, Any]], str | None]:
    """Submit a job with `check_only` set, and see it to its end; nothing is trained.

    Returns:
        What the record says of each site: its line "declared" (see `RunRecord`), or "silent"; and
        why the job failed, None where enough sites can take part.

    Raises:
        SessionError: A site of the job is not connected, or the server refuses the job.
    """
    if missing := session.missing(Job.from_folder(job).sites):
        raise SessionError(
            f"all sites of the job must be connected; {', '.join(missing)} is not. Start it there."
        )
    with steps.step("check", alone=False) as said:
        job_id = session.submit(job)
        end = job_watch.watch(session, job_id, lambda _: None, steps.say)
        said += [f"job {job_id}", *end.told()]
    server = None if end.lost else session.download(job_id, folder) / SERVER
    answers = [
        event
        for event in ([] if server is None else read_events(server))
        if event["event"] == "declared"
        or (event["event"] == "silent" and event["task"] == CHECK_TASK)
    ]
    failed = None if end.completed else explain(job_id, end, server, {}).reason
    return sorted(answers, key=lambda event: event["site"]), failed


def _submit(deployed: DeployedRun, session: FlareSession, job: Path, steps: Steps) -> str:
    """Submit a job when its sites are connected."""
    if told := at_hand.without_room({**deployed.workspaces, "this run": deployed.folder}):
        raise RoomError(f"{told}. Make room there (poc/README.md, section 2).")
    sites, patience = Job.from_folder(job).sites, deployed.sites_timeout
    with steps.step("submit") as said:
        if missing := ", ".join(session.missing(sites)):
            wait = f"waiting up to {patience:.0f} s (--sites-timeout)"
            steps.say(f"{wait} for {missing}: not connected")
            said.append(f"waited for {missing}")
            session.missing(sites, patience)
        job_id = session.submit(job)
        said.append(f"{session.kit.name}: job {job_id}")
    return job_id


def _pause(
    deployed: DeployedRun, session: FlareSession, seconds: float, reason: str, steps: Steps
) -> None:
    """Wait before another try, and for room on the disks at hand.

    Raises:
        DeployedRunError: A disk stayed full for as long as a server is waited for.
    """
    with steps.step("wait", "before the next try") as said:
        deadline = time.monotonic() + max(seconds, session.patience)
        time.sleep(seconds)
        while told := at_hand.without_room(deployed.workspaces):
            if time.monotonic() > deadline:
                raise DeployedRunError(f"{reason}\nIt is not tried again: {told}.")
            if not said[1:]:
                steps.say(f"waiting for room: {told}")
                said.append("for room on a disk")
            time.sleep(min(seconds, 10.0))


def _watch(
    deployed: DeployedRun, session: FlareSession, jobs: Sequence[str], rounds: Rounds, steps: Steps
) -> End:
    """Watch the first of some jobs; the others left a model."""
    name = "train" if deployed.trains else "run"
    with steps.step(name, alone=False) as said, round_bars(steps.console, transient=True) as bars:
        bar = RoundProgress(bars, "training", rounds.planned, rounds.made)
        try:
            end = job_watch.watch(
                session,
                jobs[0],
                lambda now: bar.show(rounds.made + now.rounds, now.best, now.stopped),
                steps.say,
                server=deployed.workspaces.get("server"),
            )
        except (KeyboardInterrupt, SystemExit):
            left = jobs[1:] if bars.tasks[0].completed == rounds.made else jobs
            steps.say(_interrupted(deployed, session, jobs[0], left, steps))
            raise
        said += end.told(rounds.made)
    return end


def _interrupted(
    deployed: DeployedRun, session: FlareSession, job_id: str, left: Sequence[str], steps: Steps
) -> str:
    """Abort a job, or not; what is said then. `left`: ids of jobs that left a model."""
    if not deployed.aborts:
        return f"job {job_id} goes on without this command. Watch it: the same command again"
    try:
        with steps.step("abort", alone=False) as said:
            said.append(status := session.abort(job_id))
    except SessionError as error:
        return deployed.left_alone(job_id, left, error)
    if not status.startswith("FINISHED"):
        return (
            f"job {job_id} was told to abort, and is {status} still. See how it ends: surgagg "
            "deploy status"
        )
    return f"job {job_id} was aborted. {deployed.how_to_resume(left)}"


def _download(
    deployed: DeployedRun, session: FlareSession, end: End, jobs: Sequence[str], steps: Steps
) -> tuple[Path | None, Rounds | None]:
    """The server's folder of the last job, and the rounds that are made, as far as at hand."""
    if end.lost:
        server = at_hand.copied(deployed.workspaces, jobs[-1], deployed.results)
        return server, rounds_left(server, jobs)
    with steps.step("download", "models and records") as said:
        downloaded = session.download(jobs[-1], deployed.results)
        server = downloaded / SERVER
        if not deployed.job.is_dir():
            (job,) = (path.parent for path in downloaded.glob("job/*/meta.json"))
            shutil.copytree(job, deployed.job, ignore=shutil.ignore_patterns(".__nvfl_sig.json"))
        rounds = rounds_left(server, jobs)
        said += [str(rounds)] * (rounds is not None)
    return server, rounds


def _continued(deployed: DeployedRun, left: Sequence[str], number: int) -> Path:
    """Job folder that continues the first of some jobs that left a model."""
    target = deployed.results / f"continued-{number}"
    shutil.rmtree(target, ignore_errors=True)  # where an earlier command was killed
    settings = {"continues": ",".join(deployed.left(left)), "num_rounds": 0}
    job_export.write(Job.from_folder(deployed.job).with_settings(settings), target)
    return target
