"""A run with planned faults on a real FLARE system."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from io import StringIO

import psutil
import pytest
from rich.console import Console

import deployed
import tiny_job
from cxr_deployment import job_watch, processes
from cxr_deployment.deployed_run import DeployedRun, DeployedRunError
from cxr_deployment.flare_session import FlareSession
from cxr_deployment.job_watch import ABORTED
from cxr_study.common.progress import Steps
from cxr_study.jobs import job_export
from cxr_study.jobs.job import Job
from cxr_study.runs.finished_run import SERVER, finished_run
from cxr_study.runs.job_results import read_events
from faults import strike_file
from simulated import THREE, UNDISTURBED, Run
from surgical_aggregation.checkpoints.checkpoint import Checkpoint, load

LIMIT = 600.0
"""Seconds that one job may take."""

_opening = threading.Lock()


@dataclass
class Part:
    """One job of a run."""

    job_id: str
    status: str = ""  # FLARE's; "LOST" when the server was started again under it
    began: float = field(default_factory=time.time)
    rounds: list[int] = field(default_factory=list)  # of the run's, those that it has made
    made: int = 0  # rounds that the run had made at its end
    model: Checkpoint | None = None  # the last on the server's disk then
    record: list = field(default_factory=list)


class FaultyRun(Run):
    """A run of a training job with planned faults, brought to its end as `deploy submit` does.

    One that an admin has aborted, which ends the command, is continued by hand as the runbook says.

    Args:
        plan: See `tiny_job.make`.
        when: Planned item -> what the test does, with the session and the job's id, once it struck.
        at_hand: Whether the runner may look into the services' workspaces, as in a POC.
        settings: Of the job, in addition to `UNDISTURBED`.
    """

    def __init__(self, system, folder, plan, when, at_hand=False, job="surgical", **settings):
        super().__init__(folder)
        self.system, self.plan, self.when, self.at_hand = system, plan, dict(when), at_hand
        self.job, self.settings = job, {**UNDISTURBED, **settings}
        self.struck = folder / "struck"
        self.parts, self.servers, self.console_output = [], (), StringIO()
        folder.mkdir()

    def run(self):
        """Run it until all rounds are made, and the last model is tested; returns itself."""
        how = {"job": self.job, "settings": self.settings, "plan": self.plan}
        job = tiny_job.make(self.folder, THREE, **how)
        with _opening:  # one at a time: what FLARE prints is kept off this process's output
            session = WatchedSession(self).__enter__()
        try:
            self._to_the_end(job, session)
        finally:
            session.__exit__()
        return self

    def _to_the_end(self, job, session):
        places = self.system.workspaces if self.at_hand else {}
        wanted = DeployedRun(
            session, Steps(Console(file=self.console_output)), job.parent,
            retries=len(self.plan), workspaces=places, pauses=[0.0],
        )  # fmt: skip
        try:
            wanted.run()
        except DeployedRunError:
            if self.parts[-1].status != ABORTED:
                raise
            again = self.folder / f"after-{len(self.parts)}" / "job"
            again.parent.mkdir()
            settings = {"continues": self.parts[-1].job_id, "num_rounds": 0}
            job_export.write(Job.of(job).with_settings(settings), again)
            self._to_the_end(again, session)
        else:
            self.servers = finished_run(wanted.folder).servers
            self._close()

    @property
    def newest(self):
        """Id of the newest job that left a model."""
        ids = (part.job_id for part in reversed(self.parts))
        return next(filter(self.left_a_model, ids), "")

    def left_a_model(self, job_id):
        return (self._models(job_id) / "last.npz").is_file()

    def checkpoint(self, name):
        return load(self._models(self.newest) / f"{name}.npz")

    def begin(self, job_id):
        self._close()
        self.parts.append(Part(job_id, made=self.parts[-1].made if self.parts else 0))

    def record_progress(self, session, status):
        """Note how far the newest job is, and act upon the faults that have struck."""
        struck = [item for item in self.when if strike_file(self.struck, item).exists()]
        part = self.parts[-1]
        part.status = status
        made = self.parts[-2].made if len(self.parts) > 1 else 0
        part.made = max(part.made, made + deployed.rounds(self.system, part.job_id))
        part.rounds = list(range(made + 1, part.made + 1))
        for item in struck:
            self.when.pop(item)(session, part.job_id)
        if time.time() > part.began + LIMIT:
            raise TimeoutError(f"job {part.job_id} is {status} after {LIMIT} s")

    def _close(self):
        """Note what the newest job left, once it has ended."""
        if not self.parts or self.parts[-1].model:
            return
        part = self.parts[-1]
        if not part.status.startswith("FINISHED"):
            part.status = "LOST"  # FLARE says RUNNING for ever
        part.model = self.checkpoint("last")
        home = list(self.folder.glob(f"**/results/{part.job_id}/{SERVER}"))
        part.record = read_events(home[0]) if home else []
        before = self.parts[-2].made if len(self.parts) > 1 else 0
        rounds = sum(event["event"] == "round" for event in part.record)
        part.made = max(part.made, before + rounds)  # some since the last look
        part.rounds = list(range(before + 1, part.made + 1))

    def _models(self, job_id):
        return self.system.server / "checkpoints" / job_id


class WatchedSession(FlareSession):
    """The session of a run with planned faults, which sees what its runner sees."""

    def __init__(self, run):
        super().__init__(run.system.lead)
        self.run = run

    def submit(self, job):
        job_id = super().submit(job)
        self.run.begin(job_id)
        return job_id

    def meta(self, job_id):
        meta = super().meta(job_id)
        self.run.record_progress(self, meta["status"])
        return meta


def kill(kit, *words):
    """Kills the processes of a service whose command has one of some words, or the job's id."""

    def act(session, job_id):
        wanted = words or (job_id,)
        for process in processes.find_processes(kit):
            with suppress(psutil.NoSuchProcess):  # a watchdog's sleep is short
                if any(word in " ".join(process.cmdline()) for word in wanted):
                    process.kill()

    return act


def together(*runs):
    """Run them side by side, and wait for all."""
    with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(len(runs)) as pool:
        patch.setattr(job_watch, "POLL", 0.5)  # tiny rounds are short
        patch.setattr(job_watch, "LONGEST", 1.0)
        patch.setattr(job_watch, "_QUIET", 2.0)
        list(pool.map(FaultyRun.run, runs))
