"""Submit, monitor, continue and download a job on a deployed system; or only ask its sites."""

from __future__ import annotations

import itertools
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
from cxr_study.runs import finished_run
from cxr_study.runs.job_results import Rounds, left_a_model, read_events, rounds_left
from surgical_aggregation.wire.headers import CHECK_TASK


class DeployedRunError(finished_run.JobFailedError):
    """A job on a deployed system did not end well."""


@dataclass
class DeployedRun:
    """A run of a job on a deployed system, in a session with it; see `run`.

    Attributes:
        session: With the server.
        steps: Where is said what is done.
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
        jobs: Ids of its jobs so far, of which the last is watched first.
        breaks: How jobs of it failed, a line each.
    """

    session: FlareSession
    steps: Steps
    folder: Path
    site_files: Path | None = None
    elsewhere: bool = True
    retries: int = 3
    workspaces: Workspaces = field(default_factory=dict)
    sites_timeout: float = 120.0
    pauses: Sequence[float] = PAUSES
    aborts: bool = True
    jobs: Sequence[str] = ()
    breaks: Sequence[str] = ()
    _left: Sequence[str] = ()  # jobs that left a model, or may have, newest first

    @property
    def job(self) -> Path:
        """Job folder, as it is submitted."""
        return self.folder / "job"

    @property
    def results(self) -> Path:
        """Folder of the downloads, one per job, and of jobs that continue it."""
        return self.folder / finished_run.RESULTS

    @property
    def asked(self) -> Job | None:
        """The job; None: its folder is not at hand."""
        return Job.from_folder(self.job) if self.job.is_dir() else None

    def note(self) -> None:
        """Write its facts: the ids of its jobs, and how some broke."""
        facts = finished_run.RunFacts(self.site_files, self.jobs, self.elsewhere, self.breaks)
        facts.write(self.folder)

    def read_noted(self) -> None:
        """Take over the facts that its folder has.

        Raises:
            RunFolderError: It is no run on a deployed system.
        """
        facts = finished_run.read_facts(self.folder)
        if not facts.jobs:
            raise finished_run.RunFolderError(
                "the folder of a run on a deployed system is needed; that in "
                f"{self.folder} was made in FLARE's simulator."
            )
        self.site_files, self.elsewhere = facts.site_files, facts.elsewhere
        self.jobs, self.breaks = facts.jobs, facts.breaks

    def run(self) -> None:
        """Run it to its end.

        An interrupt aborts the job where that is wanted; another one leaves it to itself.

        A job that broke after at least one whole round (a process was killed), or that the server
        lost, is continued by another one from the server's checkpoint, with the missing rounds,
        which the server knows; where only the test of its model is missing, that. A job that was
        aborted by an admin, that was never started, or whose sites cannot take part, is not. Before
        another job there is a pause, and as long as disks at hand are full it is not submitted.

        The ids are in the run's facts from when a job is submitted on; at the end those of the jobs
        that made it, oldest first. Of a job under which the server was restarted there are results
        where its workspace is at hand. So are sites' own files of the last job.

        Raises:
            DeployedRunError: It did not end well, or the server is gone.
            RoomError: A disk at hand is full; nothing was submitted.
            SessionError: The server refuses it.
        """
        trains = self.asked is None or self.asked.trains
        planned = self.asked.at_server.num_rounds if self.asked and trains else 0
        begun, rounds = bool(self.jobs), Rounds(0, planned)
        self._left = self.jobs[-2::-1]
        servers = [self.results / job / finished_run.SERVER for job in self.jobs[:-1]]
        servers = [server for server in servers if left_a_model(server)]
        job, before = self.job, pauses(self.pauses)
        for attempt in itertools.count():
            try:
                if attempt or not begun:
                    self.jobs = [*self.jobs, self._submit(job)]
                    self.note()
                end = self._watch(rounds)
                server, made = self._download(end)
            except SessionError as error:
                if not self.jobs:
                    raise
                raise DeployedRunError(self._left_alone(error)) from error
            trains = self.asked is None or self.asked.trains
            if made is not None:
                rounds = made
            elif end.lost:
                rounds = Rounds(rounds.made + end.seen.rounds, rounds.planned)
            if made is not None or (end.lost and server is None and trains):
                self._left = [self.jobs[-1], *self._left]
            if server is not None and (made is not None or end.completed):
                servers.append(server)
            if end.completed and (not trains or (made is not None and made.all)):
                break
            failure = explain(self.jobs[-1], end, server, self.workspaces)
            after = f" after {rounds}" if trains else ""
            reason = f"job {self.jobs[-1]} failed{after}: {failure.reason}"
            goes_on = bool(self._sources(self._left))
            if end.meta["status"] == ABORTED:
                reason += f" {self._how_to_resume(self._left)}"
            if not (failure.final or goes_on) and trains:
                reason += " No whole round was made to go on from: submit it again."
            if failure.final or not goes_on or attempt == self.retries:
                raise DeployedRunError(reason)
            if self.asked is None:
                how = self._how_to_resume(self._left)
                raise DeployedRunError(f"{reason}\nIts job folder is not at hand. {how}")
            self.steps.say(reason)
            self.breaks = [*self.breaks, reason.partition("\n")[0]]
            self.note()
            self._pause(next(before), reason)
            job = self._continued(self.asked)
        self.jobs = [server.parent.name for server in servers]
        self.note()
        for site, workspace in self.workspaces.items():
            if (kept := workspace / "checkpoints" / self.jobs[-1]).is_dir() and site != "server":
                shutil.copytree(kept, self.folder / finished_run.SITES / site, dirs_exist_ok=True)

    def _submit(self, job: Path) -> str:
        """Submit a job when its sites are connected."""
        if told := at_hand.without_room({**self.workspaces, "this run": self.folder}):
            raise RoomError(f"{told}. Make room there (poc/README.md, section 2).")
        sites, patience = Job.from_folder(job).sites, self.sites_timeout
        with self.steps.step("submit") as said:
            if missing := ", ".join(self.session.missing(sites)):
                wait = f"waiting up to {patience:.0f} s (--sites-timeout)"
                self.steps.say(f"{wait} for {missing}: not connected")
                said.append(f"waited for {missing}")
                self.session.missing(sites, patience)
            job_id = self.session.submit(job)
            said.append(f"{self.session.kit.name}: job {job_id}")
        return job_id

    def _watch(self, rounds: Rounds) -> End:
        """Watch the last job, after the rounds that others have made."""
        name = "train" if self.asked is None or self.asked.trains else "run"
        step = self.steps.step(name, alone=False)
        with step as said, round_bars(self.steps.console, transient=True) as bars:
            bar = RoundProgress(bars, "training", rounds.planned, rounds.made)
            try:
                end = job_watch.watch(
                    self.session,
                    self.jobs[-1],
                    lambda now: bar.show(rounds.made + now.rounds, now.best, now.stopped),
                    self.steps.say,
                    server=self.workspaces.get("server"),
                )
            except (KeyboardInterrupt, SystemExit):
                if bars.tasks[0].completed > rounds.made:
                    self._left = [self.jobs[-1], *self._left]
                self.steps.say(self._interrupted())
                raise
            said += end.told(rounds.made)
        return end

    def _interrupted(self) -> str:
        """Abort the last job, or not; what is said then."""
        job = self.jobs[-1]
        if not self.aborts:
            return f"job {job} goes on without this command. Watch it: the same command again"
        try:
            with self.steps.step("abort", alone=False) as said:
                said.append(status := self.session.abort(job))
        except SessionError as error:
            return self._left_alone(error)
        if not status.startswith("FINISHED"):
            return (
                f"job {job} was told to abort, and is {status} still. See how it ends: surgagg "
                "deploy status"
            )
        return f"job {job} was aborted. {self._how_to_resume(self._left)}"

    def _download(self, end: End) -> tuple[Path | None, Rounds | None]:
        """The server's folder of the last job, and the rounds that are made, as far as at hand."""
        if end.lost:
            server = at_hand.copied(self.workspaces, self.jobs[-1], self.results)
            return server, rounds_left(server, self.jobs)
        with self.steps.step("download", "models and records") as said:
            downloaded = self.session.download(self.jobs[-1], self.results)
            server = downloaded / finished_run.SERVER
            if not self.job.is_dir():
                (job,) = (path.parent for path in downloaded.glob("job/*/meta.json"))
                shutil.copytree(job, self.job, ignore=shutil.ignore_patterns(".__nvfl_sig.json"))
            rounds = rounds_left(server, self.jobs)
            said += [str(rounds)] * (rounds is not None)
        return server, rounds

    def _pause(self, seconds: float, reason: str) -> None:
        """Wait before another try, and for room on the disks at hand.

        Raises:
            DeployedRunError: A disk stayed full for as long as a server is waited for.
        """
        with self.steps.step("wait", "before the next try") as said:
            deadline = time.monotonic() + max(seconds, self.session.patience)
            time.sleep(seconds)
            while told := at_hand.without_room(self.workspaces):
                if time.monotonic() > deadline:
                    raise DeployedRunError(f"{reason}\nIt is not tried again: {told}.")
                if not said[1:]:
                    self.steps.say(f"waiting for room: {told}")
                    said.append("for room on a disk")
                time.sleep(min(seconds, 10.0))

    def _continued(self, asked: Job) -> Path:
        """Job folder that continues the newest job that left a model."""
        target = self.results / f"continued-{len(self.jobs)}"
        shutil.rmtree(target, ignore_errors=True)  # where an earlier command was killed
        settings = {"continues": ",".join(self._sources(self._left)), "num_rounds": 0}
        job_export.write(asked.with_settings(settings), target)
        return target

    def _sources(self, jobs: Sequence[str]) -> list[str]:
        """Ids of jobs to go on from, newest first: `jobs`, and those that it continues itself."""
        named = self.asked.at_server.continues if self.asked else ""
        return [*jobs, *(job.strip() for job in named.split(",") if job.strip())]

    def _how_to_resume(self, jobs: Sequence[str]) -> str:
        """How to go on by hand, from the first of some jobs that left a model."""
        again = "Go on: submit the same job with another --out"
        if not (sources := self._sources(jobs)):
            return f"{again} (it was not seen to make a round, which it could go on from)"
        continues = f"--set continues={','.join(sources)} and --set num_rounds=0"
        return f"{again}, {continues} (the rounds that are missing)"

    def _left_alone(self, error: Exception) -> str:
        """What is said of the last job where its server does not answer."""
        return (
            f"{error}\nJob {self.jobs[-1]} is left to itself: it may have ended, go on, or begin "
            "by itself. Once the server answers, watch it with surgagg deploy watch. "
            f"{self._how_to_resume(list(dict.fromkeys([self.jobs[-1], *self._left])))}"
        )


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
    server = None if end.lost else session.download(job_id, folder) / finished_run.SERVER
    answers = [
        event
        for event in ([] if server is None else read_events(server))
        if event["event"] == "declared"
        or (event["event"] == "silent" and event["task"] == CHECK_TASK)
    ]
    failed = None if end.completed else explain(job_id, end, server, {}).reason
    return sorted(answers, key=lambda event: event["site"]), failed
