"""A job in FLARE's simulator, as a child process that is watched and always stopped."""

from __future__ import annotations

import math
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import psutil
from nvflare.job_config.api import FedJob

from cxr_study.jobs.flare_job import allow_classes
from cxr_study.jobs.job import Job
from cxr_study.runs import run_failure
from cxr_study.runs.finished_run import JobFailedError, checkpoint_folder, server_folder
from cxr_study.runs.job_results import read_events
from surgical_aggregation.site.site_memory import BEST_FILE, LAST_FILE
from surgical_aggregation.wire.headers import SIMULATED_JOB

LOG_FILE = "simulator.log"

ENDING = 60.0
"""Seconds that a job may take to end after its last round, once a site's process has ended."""

_LOST = re.compile(r"(?:Communication error with|Subprocess died for) client ([^\s:,]+)")
_LOST_UNNAMED = "run_client_thread error"


class SimulationError(JobFailedError):
    """A job in the simulator did not end well."""


class LostSiteError(SimulationError):
    """A site's process ended, or FLARE lost it, and nobody said why."""


def simulate(
    job: Path,
    workspace: Path,
    *,
    environment: Mapping[str, str] = MappingProxyType({}),
    states: Mapping[str, Path] = MappingProxyType({}),
    watch: Callable[[list[dict]], None] = lambda events: None,
) -> None:
    """Run a job to its end, by FLARE's SimEnv.

    Args:
        job: Job folder.
        workspace: New folder for FLARE; the log goes to <workspace>-simulator.log beside it.
        environment: Variables for the job, beside those of this process.
        states: Site -> its checkpoint folder of an earlier run, to restore.
        watch: Called about twice a second with the run's events so far.

    Raises:
        LostSiteError: A site's process ended before the job did, and nobody said why.
        SimulationError: The job failed otherwise, or ended before its last round or early stop.
    """
    from nvflare.recipe.sim_env import SimEnv  # takes --export out of the command line

    asked = Job.from_folder(job)
    allow_classes(workspace, asked.folder.classes if asked.folder else ())
    simulator = SimEnv(clients=list(asked.sites))
    simulator.workspace_root = str(workspace.parent)  # whatever FLARE's variable of it says
    simulator.deploy(_WatchedJob(asked, job, workspace, environment, states, watch))


@dataclass(eq=False)
class _WatchedJob(FedJob):
    """A job as SimEnv takes it, run in a child process that is watched; see `simulate`."""

    asked: Job
    folder: Path
    workspace: Path
    environment: Mapping[str, str]
    states: Mapping[str, Path]
    watch: Callable[[list[dict]], None]

    def __post_init__(self) -> None:
        super().__init__()
        self.name = self.workspace.name  # SimEnv's for it; maybe a site's in any language
        self.log = self.workspace.with_name(f"{self.name}-{LOG_FILE}")

    def simulator_run(self, workspace: str, *_: Any, **__: Any) -> None:
        """Run it; SimEnv has chosen a thread per site."""
        sites = self.asked.sites
        command = [
            *(sys.executable, "-m", "cxr_study.runs.patched_simulator", str(self.folder)),
            *("-w", workspace, "-c", ",".join(sites), "-t", str(len(sites))),
        ]
        with self.log.open("w", encoding="utf-8") as output:
            process = subprocess.Popen(
                command,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **self.environment},
                start_new_session=True,  # an interrupt in the terminal is for who asked
            )
            family: set[psutil.Process] = set()
            try:
                self._attend(process, family)
            finally:
                _stop(process, family)
        events = self._events()
        self.watch(events)
        # FLARE's simulator exits with 0 also when a configuration could not be loaded.
        if process.returncode or _has("failed", events) or not self._done(events):
            reason = self._reason() or run_failure.tail(self.log) or "it printed nothing"
            raise SimulationError(self._told(reason))

    def _attend(self, process: subprocess.Popen, family: set[psutil.Process]) -> None:
        """Watch it until it ends or has failed; puts all processes that it starts into `family`."""
        workers: dict[psutil.Process, str] = {}
        waiting, first_gone = self.states, math.inf
        while process.poll() is None and not _has("failed", events := self._events()):
            for member in _descendants(process):
                family.add(member)
                if member not in workers and (site := _worker_site(member)):
                    workers[member] = site
            # FLARE empties the workspace first, and a site asks for its state with its first task,
            # seconds after its process has started.
            if waiting and (self.workspace / "server").is_dir():
                _put(waiting, self.workspace)
                waiting = {}
            self.watch(events)
            if gone := _gone(workers) or _lost(self.workspace):
                first_gone = min(first_gone, time.monotonic())
                overdue = time.monotonic() - first_gone > ENDING
                now = self._events()  # once more: sites also go because all is done, meanwhile
                if not _has("ended", now) and (overdue or not self._done(now)):
                    if reason := self._reason():
                        raise SimulationError(self._told(reason))
                    killed = f"the process of {', '.join(gone)} is gone. Was it killed?"
                    raise LostSiteError(self._told(killed))
            time.sleep(0.05 if waiting else 0.5)

    def _events(self) -> list[dict]:
        return read_events(server_folder(self.workspace))

    def _done(self, events: list[dict]) -> bool:
        """Whether all rounds are over, or those until it stopped early."""
        rounds = [event["round"] for event in events if event["event"] == "round"]
        if any(event["event"] == "stopped" and event["round"] in rounds for event in events):
            return True
        return len(rounds) >= self.asked.at_server.num_rounds

    def _reason(self) -> str:
        """Why it ended early: what its parties say of themselves, and what the server did then."""
        parties = (*self.asked.sites, run_failure.SERVER)
        folders = {party: self.workspace / party for party in parties}
        known = run_failure.parties(folders, SIMULATED_JOB, "error_log.txt")
        return run_failure.explain(server_folder(self.workspace), known).reason

    def _told(self, reason: str) -> str:
        return f"the job failed: {reason}\nThe log is {self.log}"


def _put(states: Mapping[str, Path], workspace: Path) -> None:
    """Copy sites' states into a workspace; a site sees the whole of its own or nothing."""
    for site, folder in states.items():
        target = checkpoint_folder(workspace, site)
        half = target.with_name(f".{target.name}")
        shutil.copytree(folder, half, ignore=shutil.ignore_patterns(".*", LAST_FILE, BEST_FILE))
        half.rename(target)


def _gone(workers: dict[psutil.Process, str]) -> list[str]:
    """Sites whose process has ended; the server would wait for them for ever.

    A process that a site's has just started looks like it until it runs its own program, and ends.
    """
    there = {site for process, site in workers.items() if _worker_site(process) == site}
    return sorted(set(workers.values()) - there)


def _lost(workspace: Path) -> list[str]:
    """Sites that FLARE itself gave up; it goes on waiting for them."""
    log = workspace / "server" / "error_log.txt"
    text = log.read_text(encoding="utf-8", errors="replace") if log.is_file() else ""
    return sorted(set(_LOST.findall(text))) or ["a site"] * (_LOST_UNNAMED in text)


def _worker_site(process: psutil.Process) -> str | None:
    """Name of the site that a simulator worker works for; None for another process."""
    with suppress(psutil.Error):
        command = process.cmdline()
        if any("simulator_worker" in word for word in command) and "--client" in command:
            return command[command.index("--client") + 1]
    return None


def _has(kind: str, events: list[dict]) -> bool:
    return any(event["event"] == kind for event in events)


def _descendants(process: subprocess.Popen) -> set[psutil.Process]:
    with suppress(psutil.NoSuchProcess):
        return set(psutil.Process(process.pid).children(recursive=True))
    return set()


def _stop(process: subprocess.Popen, family: set[psutil.Process]) -> None:
    """End whatever is left of the simulator; its workers lead process groups of their own."""
    left = family | _descendants(process)
    process.terminate()
    for end in (psutil.Process.terminate, psutil.Process.kill):
        for member in left:
            with suppress(psutil.NoSuchProcess):
                end(member)
        _, left = psutil.wait_procs(left, timeout=1)
    process.kill()
    process.wait()
