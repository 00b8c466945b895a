"""A run on a real FLARE system that faults strike, continued until all rounds are made."""

import json
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import deployed
import faulty_job
from cxr_study.deployment import services
from cxr_study.deployment.flare_session import FlareSession
from surgical_aggregation.checkpoint import Checkpoint, load

SITES = {
    "north": {"classes": ["Edema", "Nodule/Mass"], "images": 24},
    "south": {"classes": ["Edema", "Fracture"], "images": 16},
}
UNION = ["Edema", "Fracture", "Nodule/Mass"]
ROUNDS = 5
KNOBS = {
    "num_rounds": ROUNDS, "epochs": 2, "learning_rate": 0.01, "warmup_epochs": 2, "threads": 1,
    "wait_seconds": 60, "tracking": "none",
}  # fmt: skip

LIMIT = 150.0
"""Seconds that one job may take."""

_opening = threading.Lock()


@dataclass
class Part:
    """One job of a run.

    Attributes:
        job_id: Its id.
        status: FLARE's, at its end; "LOST" when the server was started again under it.
        began: When it was submitted, seconds.
        rounds: Number of rounds that the run had made -> when that was seen.
        made: Number of rounds that the run had made at its end.
        model: The run's last model on the server's disk then.
        record: Events of its run record.
    """

    job_id: str
    status: str = ""
    began: float = field(default_factory=time.time)
    rounds: dict[int, float] = field(default_factory=dict)
    made: int = 0
    model: Checkpoint | None = None
    record: list = field(default_factory=list)


class FaultyRun:
    """A run of the surgical job with planned faults, in as many jobs as it takes.

    Args:
        system: The FLARE system.
        folder: New folder for jobs and marks.
        sites: Its sites, see `tiny_job.make`.
        plan: See `faulty_job.make`.
        when: Planned item -> what the test does, with the session and the job's id, once it struck.
        knobs: Of the job, beside `KNOBS`.
    """

    def __init__(self, system, folder, sites=SITES, plan=(), when=None, **knobs):
        self.system = system
        self.folder = folder
        self.sites = sites
        self.plan = plan
        self.when = dict(when or {})
        self.knobs = {**KNOBS, **knobs}
        self.struck = folder / "struck"
        self.parts = []
        folder.mkdir()

    def run(self):
        """Run it until all rounds are made; returns itself."""
        with _opening:  # one at a time: what FLARE prints is kept off this process's output
            session = FlareSession(self.system.lead).__enter__()
        try:
            while self.made < self.knobs["num_rounds"]:
                assert len(self.parts) <= len(self.plan), self.parts
                self._part(session)
        finally:
            session.__exit__()
        return self

    @property
    def made(self):
        """Number of rounds that are made."""
        return self.parts[-1].made if self.parts else 0

    @property
    def newest(self):
        """Id of the newest job that made a round."""
        return next((part.job_id for part in reversed(self.parts) if part.rounds), "")

    def checkpoint(self, name):
        """The last or best model on the server's disk."""
        return load(self.system.server / "checkpoints" / self.newest / f"{name}.npz")

    def after(self, made):
        """The model after so many rounds."""
        return load(self.struck / f"round-{made}.npz")

    def recovery(self, item):
        """Seconds from a fault in a round to that round's end; whether a new job had to make it."""
        made = int(item.split(":")[1]) + 1
        at, over = (
            path.stat().st_mtime
            for path in (mark(self.struck, item), self.struck / f"round-{made}.npz")
        )
        (part,) = [part for part in self.parts if made in part.rounds]
        return over - at, int(part.began > at)

    def _part(self, session):
        made = self.made
        job = faulty_job.make(
            self.folder / f"job{len(self.parts)}",
            self.sites,
            self.plan,
            struck=self.struck,
            settings={
                **self.knobs, "num_rounds": self.knobs["num_rounds"] - made,
                "continues": self.newest,
            },
        )  # fmt: skip
        part = Part(session.submit(job))
        self.parts.append(part)
        meta = self._watch(session, part, made)
        if part.status != "LOST":
            part.record = deployed.downloaded(session, self.system, part.job_id, meta).record
        part.made = max(part.rounds, default=made)
        part.model = self.checkpoint("last")

    def _watch(self, session, part, made):
        started = session.server_started()
        deadline = time.monotonic() + LIMIT
        while time.monotonic() < deadline:
            meta = session.meta(part.job_id)
            part.status = meta["status"]
            for number in range(made + 1, made + 1 + deployed.rounds(self.system, part.job_id)):
                part.rounds.setdefault(number, time.time())
            for item in [item for item in self.when if mark(self.struck, item).exists()]:
                self.when.pop(item)(session, part.job_id)
            if session.server_started() != started:
                part.status = "LOST"  # FLARE says RUNNING for ever
            if part.status == "LOST" or part.status.startswith("FINISHED"):
                return meta
            time.sleep(0.3)
        raise TimeoutError(f"job {part.job_id} is {part.status} after {LIMIT} s")


def mark(folder, item):
    """The file that says that a planned fault has struck."""
    return Path(folder) / item.replace(":", "-")


def kill(kit, *words):
    """What kills the processes of a service whose command has a word, or the job's."""

    def act(session, job_id):
        wanted = words or (job_id,)
        for process in services.processes(kit):
            if any(word in " ".join(process.cmdline()) for word in wanted):
                process.kill()

    return act


def together(*runs):
    """Run them side by side, and wait for all."""
    with ThreadPoolExecutor(len(runs)) as pool:
        return [done.result() for done in [pool.submit(run.run) for run in runs]]


def tell(fault, **facts):
    """Add a line to the file that FAULT_TABLE names, if it does; see benchmarks/fault_table.py."""
    if path := os.environ.get("FAULT_TABLE"):
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(json.dumps({"fault": fault, **facts}) + "\n")
