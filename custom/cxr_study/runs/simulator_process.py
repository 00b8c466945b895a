"""A job in FLARE's simulator, as a child process that is watched and always stopped."""

from __future__ import annotations

import math
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
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
    environment: dict[str, str] | None = None,
    states: Mapping[str, Path] | None = None,
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
    run = partial(_run, asked, job, environment=environment or {}, states=states or {}, watch=watch)
    simulator = SimEnv(clients=list(asked.sites))
    simulator.workspace_root = str(workspace.parent)  # whatever FLARE's variable of it says
    simulator.deploy(_WatchedJob(workspace.name, run))


class _WatchedJob(FedJob):
    """A job as SimEnv takes it, run by a function that gets its workspace."""

    def __init__(self, name: str, run: Callable[[Path], None]):
        super().__init__()
        self.name = name  # of the workspace, maybe that of a site in any language
        self._run = run

    def simulator_run(self, workspace: str, *_: Any, **__: Any) -> None:
        """Run it; SimEnv has chosen a thread per site."""
        self._run(Path(workspace))


def _run(
    job: Job,
    folder: Path,
    workspace: Path,
    *,
    environment: Mapping[str, str],
    states: Mapping[str, Path],
    watch: Callable[[list[dict]], None],
) -> None:
    log = workspace.with_name(f"{workspace.name}-{LOG_FILE}")
    server, planned = server_folder(workspace), job.at_server.num_rounds
    command = [
        sys.executable, "-m", "cxr_study.runs.patched_simulator",
        str(folder), "-w", str(workspace), "-c", ",".join(job.sites), "-t", str(len(job.sites)),
    ]  # fmt: skip
    with log.open("w", encoding="utf-8") as output:
        process = subprocess.Popen(
            command,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, **environment},
            start_new_session=True,  # an interrupt in the terminal is for the process that asked
        )
        family: set[psutil.Process] = set()
        workers: dict[psutil.Process, str] = {}
        waiting = dict(states)
        first_gone = math.inf
        try:
            while process.poll() is None and not _failed(events := read_events(server)):
                for member in _descendants(process):
                    family.add(member)
                    if member not in workers and (site := _worker_site(member)):
                        workers[member] = site
                # FLARE empties the workspace first, and a site asks for its state with its first
                # task, seconds after its process has started.
                if waiting and (workspace / "server").is_dir():
                    _put(waiting, workspace)
                    waiting = {}
                watch(events)
                gone = _gone(workers) or _lost(workspace)
                if gone:
                    first_gone = min(first_gone, time.monotonic())
                overdue = time.monotonic() - first_gone > ENDING
                # Read once more: sites also go because all is done, meanwhile.
                if (
                    gone
                    and not _ended(now := read_events(server))
                    and (overdue or not _done(now, planned))
                ):
                    if reason := _reason(workspace, job.sites):
                        raise SimulationError(f"the job failed: {reason}\nThe log is {log}")
                    killed = f"the process of {', '.join(gone)} is gone. Was it killed?"
                    raise LostSiteError(f"the job failed: {killed}\nThe log is {log}")
                time.sleep(0.05 if waiting else 0.5)
        finally:
            _stop(process, family)
    events = read_events(server)
    watch(events)
    # FLARE's simulator exits with 0 also when a configuration could not be loaded.
    if process.returncode or _failed(events) or not _done(events, planned):
        reason = _reason(workspace, job.sites) or run_failure.tail(log) or "it printed nothing"
        raise SimulationError(f"the job failed: {reason}\nThe log is {log}")


def _done(events: list[dict], planned: int) -> bool:
    """Whether all rounds are over, or those until it stopped early."""
    rounds = [event["round"] for event in events if event["event"] == "round"]
    if any(event["event"] == "stopped" and event["round"] in rounds for event in events):
        return True
    return len(rounds) >= planned


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


def _ended(events: list[dict]) -> bool:
    return any(event["event"] == "ended" for event in events)


def _failed(events: list[dict]) -> list[str]:
    return [event["reason"] for event in events if event["event"] == "failed"]


def _reason(workspace: Path, sites: Sequence[str]) -> str:
    """Why a run ended early: what its parties say of themselves, and what the server did then."""
    folders = {party: workspace / party for party in (*sites, run_failure.SERVER)}
    known = run_failure.parties(folders, SIMULATED_JOB, "error_log.txt")
    return run_failure.explain(server_folder(workspace), known).reason


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
