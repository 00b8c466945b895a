"""Submit, monitor, continue and download a job on a deployed system; or only check its sites."""

from __future__ import annotations

import itertools
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cxr_deployment import job_watch, local_workspaces
from cxr_deployment.flare_session import PAUSES, FlareSession, SessionError, pauses
from cxr_deployment.job_watch import ABORTED, End, explain
from cxr_deployment.local_workspaces import DiskFullError, Workspaces
from cxr_study.common.progress import RoundProgress, Steps, round_bars
from cxr_study.jobs import job_export
from cxr_study.jobs.job import Job
from cxr_study.runs import finished_run
from cxr_study.runs.job_results import Rounds, has_last_model, read_events, rounds_made
from surgical_aggregation.wire.headers import CHECK_TASK


class DeployedRunError(finished_run.JobFailedError):
    """A job on a deployed system failed, was aborted, or can no longer be watched."""


@dataclass
class DeployedRun:
    """A run on a deployed system: one job, or several that continue each other; see `run`.

    Attributes:
        session: An open session with the server.
        steps: Where progress is reported.
        folder: The run's folder. Its `job` is the job folder, which for a job that somebody else
            submitted is there after the download. Facts and downloads of the run are written here.
        site_files: Folder of <site>.yaml; None: see `elsewhere`.
        elsewhere: Whether the sites' data is on other machines. If not, it is that of `site_files`,
            or the phantom's if these are None.
        retries: How often a failed job is continued by another one.
        workspaces: Those on this machine.
        sites_timeout: Seconds to wait for the job's sites before it is submitted all the same.
            FLARE decides then whether it starts.
        pauses: Seconds before each continuing job; the last is repeated.
        aborts: Whether an interrupt aborts the job. If not, the job continues without this process.
        jobs: Ids of the run's jobs so far; `run` watches the last of them first.
        breaks: One line per failed job: its id, its rounds and the reason.

    Example:
        >>> with FlareSession(kit) as session:  # doctest: +SKIP
        ...     DeployedRun(session, Steps(Console()), Path("runs/first")).run()
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
    _with_model: Sequence[str] = ()  # jobs that have a model at the server, or may, newest first

    @property
    def job(self) -> Path:
        """Job folder, as it is submitted."""
        return self.folder / "job"

    @property
    def results(self) -> Path:
        """Folder of the downloads, one per job, and of the continuing jobs' folders."""
        return self.folder / finished_run.RESULTS

    @property
    def requested(self) -> Job | None:
        """The parsed job folder; None if the folder is not on this machine."""
        return Job.from_folder(self.job) if self.job.is_dir() else None

    def write_facts(self) -> None:
        """Write the run's facts (job ids, site files, failed jobs) into its folder."""
        facts = finished_run.RunFacts(self.site_files, self.jobs, self.elsewhere, self.breaks)
        facts.write(self.folder)

    def read_facts(self) -> None:
        """Set the attributes from the facts in the run's folder.

        Raises:
            RunFolderError: The folder is not that of a run on a deployed system.
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
        """Submit the job (or watch the last of `jobs`) and wait until the run is complete.

        A failed job is continued by another one, from the server's checkpoint, if at least one
        round was completed or the server was restarted while it ran. The server knows which rounds,
        or which validation, are missing. A job is not continued if an admin aborted it, if it was
        never started, or if its sites cannot participate. Before each continuing job there is a
        pause, which lasts as long as a disk on this machine is full.

        An interrupt aborts the job if `aborts` is set. A second interrupt ends this process without
        waiting; the job may then continue.

        Ids are written to the run's facts as soon as a job is submitted; at the end they are those
        of the jobs that contribute to the result, oldest first. Results of a job during which the
        server was restarted, and the sites' own files of the last job, are copied only from
        workspaces on this machine.

        Raises:
            DeployedRunError: The run failed or was aborted, or the server is no longer reachable.
            DiskFullError: A disk on this machine is full; no job was submitted.
            SessionError: The server refuses the job.
        """
        trains = self.requested is None or self.requested.trains
        planned = self.requested.at_server.num_rounds if self.requested and trains else 0
        begun, rounds = bool(self.jobs), Rounds(0, planned)
        self._with_model = self.jobs[-2::-1]
        servers = [self.results / job / finished_run.SERVER for job in self.jobs[:-1]]
        servers = [server for server in servers if has_last_model(server)]
        job, waits = self.job, pauses(self.pauses)
        for attempt in itertools.count():
            try:
                if attempt or not begun:
                    self.jobs = [*self.jobs, self._submit(job)]
                    self.write_facts()
                end = self._watch(rounds)
                server, made = self._download(end)
            except SessionError as error:
                if not self.jobs:
                    raise
                raise DeployedRunError(self._unwatched(error)) from error
            trains = self.requested is None or self.requested.trains
            if made is not None:
                rounds = made
            elif end.lost:
                rounds = Rounds(rounds.made + end.seen.rounds, rounds.planned)
            if made is not None or (end.lost and server is None and trains):
                self._with_model = [self.jobs[-1], *self._with_model]
            if server is not None and (made is not None or end.completed):
                servers.append(server)
            if end.completed and (not trains or (made is not None and made.complete)):
                break
            failure = explain(self.jobs[-1], end, server, self.workspaces)
            after = f" after {rounds}" if trains else ""
            reason = f"job {self.jobs[-1]} failed{after}: {failure.reason}"
            resumable = bool(self._sources(self._with_model))
            if end.meta["status"] == ABORTED:
                reason += f" {self._how_to_resume(self._with_model)}"
            if not (failure.final or resumable) and trains:
                reason += " It left no model to resume from: submit it again."
            if failure.final or not resumable or attempt == self.retries:
                raise DeployedRunError(reason)
            if self.requested is None:
                how = self._how_to_resume(self._with_model)
                raise DeployedRunError(f"{reason}\nIts job folder is not on this machine. {how}")
            self.steps.say(reason)
            self.breaks = [*self.breaks, reason.partition("\n")[0]]
            self.write_facts()
            self._pause(next(waits), reason)
            job = self._continued(self.requested)
        self.jobs = [server.parent.name for server in servers]
        self.write_facts()
        for site, workspace in self.workspaces.items():
            if (files := workspace / "checkpoints" / self.jobs[-1]).is_dir() and site != "server":
                shutil.copytree(files, self.folder / finished_run.SITES / site, dirs_exist_ok=True)

    def _submit(self, job: Path) -> str:
        """Submit a job when its sites are connected, or after `sites_timeout`; return its id."""
        disks = {**self.workspaces, "this run": self.folder}
        if full := local_workspaces.describe_full_disks(disks):
            raise DiskFullError(f"{full}. Make room there (docs/how-to/operate.md).")
        sites, patience = Job.from_folder(job).sites, self.sites_timeout
        with self.steps.step("submit") as details:
            if missing := ", ".join(self.session.missing(sites)):
                wait = f"waiting up to {patience:g} s (--sites-timeout)"
                self.steps.say(f"{wait} for {missing}: not connected")
                details.append(f"waited for {missing}")
                self.session.missing(sites, patience)
            job_id = self.session.submit(job)
            details.append(f"{self.session.kit.name}: job {job_id}")
        return job_id

    def _watch(self, rounds: Rounds) -> End:
        """Watch the last job; `rounds` are those of the jobs before it."""
        name = "train" if self.requested is None or self.requested.trains else "run"
        step = self.steps.step(name, alone=False)
        with step as details, round_bars(self.steps.console, transient=True) as bars:
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
                    self._with_model = [self.jobs[-1], *self._with_model]
                self.steps.say(self._handle_interrupt())
                raise
            details += end.describe(rounds.made)
        return end

    def _handle_interrupt(self) -> str:
        """Abort the last job if `aborts` is set; return what happened and how to resume."""
        job = self.jobs[-1]
        if not self.aborts:
            return f"job {job} continues without this command. Watch it: the same command again"
        try:
            with self.steps.step("abort", alone=False) as details:
                details.append(status := self.session.abort(job))
        except SessionError as error:
            return self._unwatched(error)
        if not status.startswith("FINISHED"):
            return (
                f"abort of job {job} was requested; it is still {status}. See how it ends: surgagg "
                "deploy status"
            )
        return f"job {job} was aborted. {self._how_to_resume(self._with_model)}"

    def _download(self, end: End) -> tuple[Path | None, Rounds | None]:
        """Get the results of the last job.

        Returns:
            The server's folder of the job, and the rounds made so far; None for what is missing: a
            lost job whose server is on another machine, a job without a model.
        """
        if end.lost:
            server = local_workspaces.copy_job_folder(self.workspaces, self.jobs[-1], self.results)
            return server, rounds_made(server, self.jobs)
        with self.steps.step("download", "models and records") as details:
            downloaded = self.session.download(self.jobs[-1], self.results)
            server = downloaded / finished_run.SERVER
            if not self.job.is_dir():
                (job,) = (path.parent for path in downloaded.glob("job/*/meta.json"))
                shutil.copytree(job, self.job, ignore=shutil.ignore_patterns(".__nvfl_sig.json"))
            rounds = rounds_made(server, self.jobs)
            details += [str(rounds)] * (rounds is not None)
        return server, rounds

    def _pause(self, seconds: float, reason: str) -> None:
        """Wait before another attempt, and until the disks on this machine have space.

        Raises:
            DeployedRunError: A disk is still full when the session's patience ends.
        """
        with self.steps.step("wait", "before the next attempt") as details:
            deadline = time.monotonic() + max(seconds, self.session.patience)
            time.sleep(seconds)
            while full := local_workspaces.describe_full_disks(self.workspaces):
                if time.monotonic() > deadline:
                    raise DeployedRunError(f"{reason}\nThere is no further attempt: {full}.")
                if not details[1:]:
                    self.steps.say(f"waiting for disk space: {full}")
                    details.append("for disk space")
                time.sleep(min(seconds, 10.0))

    def _continued(self, requested: Job) -> Path:
        """Write the folder of a job that continues the newest job with a model.

        Without a model of this run's own jobs it is the requested job again, with its rounds.
        """
        target = self.results / f"continued-{len(self.jobs)}"
        shutil.rmtree(target, ignore_errors=True)  # an earlier command may have been killed here
        sources = {"continues": ",".join(self._sources(self._with_model)), "num_rounds": 0}
        job_export.write(requested.with_settings(sources if self._with_model else {}), target)
        return target

    def _sources(self, jobs: Sequence[str]) -> list[str]:
        """Ids of jobs to resume from, newest first: `jobs`, and those that the job continues."""
        continued = self.requested.at_server.continues if self.requested else ""
        return [*jobs, *(job.strip() for job in continued.split(",") if job.strip())]

    def _how_to_resume(self, jobs: Sequence[str]) -> str:
        """How a user resumes the run from the first of `jobs` that has a model."""
        again = "Resume: submit the same job with another --out"
        if not jobs:
            return f"{again} (it starts where this one did: no completed round was observed)"
        continues = f"--set continues={','.join(self._sources(jobs))} and --set num_rounds=0"
        return f"{again}, {continues} (the missing rounds)"

    def _unwatched(self, error: Exception) -> str:
        """Message for a job whose server is not reachable: what may happen, how to resume."""
        return (
            f"{error}\nJob {self.jobs[-1]} is no longer watched: it may have ended, continue, or "
            "start later. When the server is reachable, watch it with surgagg deploy watch. "
            f"{self._how_to_resume(list(dict.fromkeys([self.jobs[-1], *self._with_model])))}"
        )


def check(
    job: Path, session: FlareSession, folder: Path, steps: Steps
) -> tuple[list[dict[str, Any]], str | None]:
    """Submit a job whose setting `check_only` is on, and wait for its end; nothing is trained.

    Args:
        job: Folder of the job.
        session: An open session with the server.
        folder: Where the job's result is downloaded to.
        steps: Where progress is reported.

    Returns:
        The record's event of each site, "declared" (see `RunRecord`) or "silent", sorted by site;
        and why the job failed, None if enough sites can participate.

    Raises:
        SessionError: A site of the job is not connected, or the server refuses the job.
    """
    if missing := session.missing(Job.from_folder(job).sites):
        raise SessionError(
            f"all sites of the job must be connected; {', '.join(missing)} is not. Start it there."
        )
    with steps.step("check", alone=False) as details:
        job_id = session.submit(job)
        end = job_watch.watch(session, job_id, lambda _: None, steps.say)
        details += [f"job {job_id}", *end.describe()]
    server = None if end.lost else session.download(job_id, folder) / finished_run.SERVER
    answers = [
        event
        for event in ([] if server is None else read_events(server))
        if event["event"] == "declared"
        or (event["event"] == "silent" and event["task"] == CHECK_TASK)
    ]
    failed = None if end.completed else explain(job_id, end, server, {}).reason
    return sorted(answers, key=lambda event: event["site"]), failed
