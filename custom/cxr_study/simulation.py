"""A job in FLARE's simulator, as a child process that is watched and always stopped."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from cxr_study import job_folder
from surgical_aggregation.run_record import RECORD_FILE

LOG_FILE = "simulator.log"


class SimulationError(RuntimeError):
    """A job did not end well; the message holds the reason and the log to read."""


def server_folder(workspace: Path) -> Path:
    """Folder of the server's results in a simulator workspace."""
    return workspace / "server" / "simulate_job"


def read_record(workspace: Path) -> list[dict]:
    """Events of a run so far (see `run_record.RunRecord`); empty before it starts."""
    path = server_folder(workspace) / RECORD_FILE
    if not path.is_file():
        return []
    lines = path.read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines if line.endswith("}")]


def simulate(
    job: Path,
    workspace: Path,
    sites: Sequence[str],
    *,
    environment: dict[str, str] | None = None,
    watch: Callable[[list[dict]], None] = lambda events: None,
) -> None:
    """Run a job to its end.

    One simulator thread per site: with fewer, FLARE starts a new process for every task.

    Args:
        job: Job folder.
        workspace: New folder for FLARE; the log goes to <workspace>.log beside it.
        sites: Names of the sites.
        environment: Variables for the job, beside those of this process.
        watch: Called about twice a second with the run's events so far.

    Raises:
        SimulationError: The job failed, or ended without all its rounds.
    """
    log = workspace.with_name(f"{workspace.name}-{LOG_FILE}")
    workspace.parent.mkdir(parents=True, exist_ok=True)
    command = [
        sys.executable, "-m", "nvflare.private.fed.app.simulator.simulator",
        str(job), "-w", str(workspace), "-c", ",".join(sites), "-t", str(len(sites)),
    ]  # fmt: skip
    with log.open("w", encoding="utf-8") as output:
        process = subprocess.Popen(
            command,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, **(environment or {})},
            start_new_session=True,  # so that the group holds every process of the simulator
        )
        try:
            while process.poll() is None:
                watch(read_record(workspace))
                time.sleep(0.5)
        finally:
            _stop(process)
    events = read_record(workspace)
    watch(events)
    failures = [event["reason"] for event in events if event["event"] == "failed"]
    done = sum(event["event"] == "round" for event in events)
    # FLARE's simulator exits with 0 also when a site could not start.
    if process.returncode or failures or done < job_folder.knobs(job)["num_rounds"]:
        reason = failures[0] if failures else _last_errors(log)
        raise SimulationError(f"the job failed: {reason}\nThe log is {log}")


def _stop(process: subprocess.Popen) -> None:
    """End whatever is left of the simulator's process group."""
    try:
        os.killpg(process.pid, signal.SIGTERM)
        time.sleep(0.2)
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def _last_errors(log: Path, count: int = 5) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    errors = [line for line in lines if " - ERROR - " in line or "Error" in line]
    return "\n".join((errors or lines)[-count:]) or "it printed nothing"
