"""Run a job in FLARE's simulator, as a child process that is watched and always stopped.

FLARE's simulator waits without limit for a site whose process has died. Here the processes of the
sites are watched, and the run ends with the reason.
"""

from __future__ import annotations

import json
import math
import os
import re
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
from cxr_study.runs.finished_run import STATES, JobFailedError, server_folder
from cxr_study.runs.job_results import RecordEvent, read_events
from surgical_aggregation.wire.headers import SIMULATED_JOB

LOG_FILE = "simulator.log"
"""End of the log file's name."""

ENDING = 60.0
"""Seconds that a job may take to end after its last round, once a site's process has ended."""

_LOST = re.compile(r"(?:Communication error with|Subprocess died for) client ([^\s:,]+)")
"""In the server's error log: FLARE has lost a site and names it."""

_LOST_UNNAMED = "run_client_thread error"
"""In the server's error log: FLARE has lost a site and does not name it."""


class SimulationError(JobFailedError):
    """A job in the simulator failed."""


class LostSiteError(SimulationError):
    """A site's process ended without a reason in any log, for instance because it was killed."""


def simulate(
    job: Path,
    workspace: Path,
    *,
    environment: Mapping[str, str] = MappingProxyType({}),
    states: Mapping[str, Path] = MappingProxyType({}),
    watch: Callable[[list[RecordEvent]], None] = lambda events: None,
) -> None:
    """Run a job to its end with FLARE's SimEnv.

    Args:
        job: Job folder.
        workspace: New folder for FLARE. The log is the file <workspace>-simulator.log.
        environment: Environment variables for the job, in addition to those of this process.
        states: Site -> its checkpoint folder of an earlier run, which is restored before the site
            starts. Default: none.
        watch: Called about twice a second with the job's events so far. An exception that it raises
            ends the run.

    Raises:
        LostSiteError: A site's process ended before the job did, without a reason in any log.
        SimulationError: The job failed for another reason, or ended before its last round without
            early stopping.

    Example:
        >>> simulate(Path("my-job"), Path("runs/first/workspace"))  # doctest: +SKIP
    """
    from nvflare.recipe.sim_env import SimEnv  # its import removes --export from sys.argv

    requested = Job.from_folder(job)
    allow_classes(workspace, requested.folder.classes if requested.folder else ())
    simulator = SimEnv(clients=list(requested.sites))
    simulator.workspace_root = str(workspace.parent)  # overrides FLARE's environment variable
    simulator.deploy(_WatchedJob(requested, job, workspace, environment, states, watch))


@dataclass(eq=False)
class _WatchedJob(FedJob):
    """A job for SimEnv, run in a watched child process; for the attributes see `simulate`."""

    requested: Job
    folder: Path
    workspace: Path
    environment: Mapping[str, str]
    states: Mapping[str, Path]
    watch: Callable[[list[RecordEvent]], None]

    def __post_init__(self) -> None:
        super().__init__()
        self.name = self.workspace.name  # SimEnv's name of the folder; may be in any language
        self.log = self.workspace.with_name(f"{self.name}-{LOG_FILE}")

    def simulator_run(self, workspace: str, *_: Any, **__: Any) -> None:
        """Run the job; called by SimEnv, whose other arguments are not needed."""
        sites = self.requested.sites
        command = [
            *(sys.executable, "-m", "cxr_study.runs.patched_simulator", str(self.folder)),
            *("-w", workspace, "-c", ",".join(sites), "-t", str(len(sites))),
        ]
        with self.log.open("w", encoding="utf-8") as output:
            process = subprocess.Popen(
                command,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **self.environment, STATES: self._states()},
                start_new_session=True,  # an interrupt in the terminal reaches this process only
            )
            family: set[psutil.Process] = set()
            try:
                self._monitor(process, family)
            finally:
                _stop(process, family)
        events = self._events()
        self.watch(events)
        # FLARE's simulator exits with 0 even if a configuration could not be loaded.
        if process.returncode or _has("failed", events) or not self._done(events):
            reason = self._reason() or run_failure.tail(self.log) or "it printed nothing"
            raise SimulationError(self._message(reason))

    def _monitor(self, process: subprocess.Popen[bytes], family: set[psutil.Process]) -> None:
        """Watch the simulator until it ends or fails; add all processes it starts to `family`."""
        workers: dict[psutil.Process, str] = {}
        first_gone = math.inf
        while process.poll() is None and not _has("failed", events := self._events()):
            for member in _descendants(process):
                family.add(member)
                if member not in workers and (site := _worker_site(member)):
                    workers[member] = site
            self.watch(events)
            if gone := _gone(workers) or _lost(self.workspace):
                first_gone = min(first_gone, time.monotonic())
                overdue = time.monotonic() - first_gone > ENDING
                now = self._events()  # read again: sites also end because the job has just ended
                if not _has("ended", now) and (overdue or not self._done(now)):
                    if reason := self._reason():
                        raise SimulationError(self._message(reason))
                    killed = f"the process of {', '.join(gone)} is gone. Was it killed?"
                    raise LostSiteError(self._message(killed))
            time.sleep(0.5)

    def _states(self) -> str:
        return json.dumps({site: str(folder.absolute()) for site, folder in self.states.items()})

    def _events(self) -> list[RecordEvent]:
        return read_events(server_folder(self.workspace))

    def _done(self, events: list[RecordEvent]) -> bool:
        """Whether all rounds are completed, or those until it stopped early."""
        rounds = [event["round"] for event in events if event["event"] == "round"]
        if any(event["event"] == "stopped" and event["round"] in rounds for event in events):
            return True
        return len(rounds) >= self.requested.at_server.num_rounds

    def _reason(self) -> str:
        """Why the job failed, from notes, record and logs; empty if they do not state it."""
        parties = (*self.requested.sites, run_failure.SERVER)
        folders = {party: self.workspace / party for party in parties}
        known = run_failure.parties(folders, SIMULATED_JOB, "error_log.txt")
        return run_failure.explain(server_folder(self.workspace), known).reason

    def _message(self, reason: str) -> str:
        return f"the job failed: {reason}\nThe log is {self.log}"


def _gone(workers: dict[psutil.Process, str]) -> list[str]:
    """Sites without a running process, for which the server would wait without limit.

    A site can have several entries: a process that a site's worker has forked has the worker's
    command line until it executes its own program.

    Args:
        workers: Process -> the site that it was a worker of when it was first seen.
    """
    alive = {site for process, site in workers.items() if _worker_site(process) == site}
    return sorted(set(workers.values()) - alive)


def _lost(workspace: Path) -> list[str]:
    """Sites that FLARE has reported as lost in its log, although it keeps waiting for them."""
    log = workspace / "server" / "error_log.txt"
    text = log.read_text(encoding="utf-8", errors="replace") if log.is_file() else ""
    return sorted(set(_LOST.findall(text))) or ["a site"] * (_LOST_UNNAMED in text)


def _worker_site(process: psutil.Process) -> str | None:
    """Name of the site whose tasks a simulator process executes; None for any other process."""
    with suppress(psutil.Error):
        command: list[str] = process.cmdline()
        if any("simulator_worker" in word for word in command) and "--client" in command:
            return command[command.index("--client") + 1]
    return None


def _has(kind: str, events: list[RecordEvent]) -> bool:
    return any(event["event"] == kind for event in events)


def _descendants(process: subprocess.Popen[bytes]) -> set[psutil.Process]:
    with suppress(psutil.NoSuchProcess):
        return set(psutil.Process(process.pid).children(recursive=True))
    return set()


def _stop(process: subprocess.Popen[bytes], family: set[psutil.Process]) -> None:
    """End all remaining processes of the simulator; each worker has its own process group."""
    remaining = family | _descendants(process)
    process.terminate()
    for send_signal, seconds in ((psutil.Process.terminate, 1), (psutil.Process.kill, 60)):
        for member in remaining:
            with suppress(psutil.NoSuchProcess):
                send_signal(member)
        _, remaining = psutil.wait_procs(remaining, timeout=seconds)
    process.kill()
    process.wait()
