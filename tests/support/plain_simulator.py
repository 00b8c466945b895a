"""FLARE's simulator as a user starts it, for jobs that train nothing; always stopped."""

import shutil
import subprocess
import sys
import time
from contextlib import suppress

import psutil

LOST = ("Communication error with client", "run_client_thread error")
"""Another process took the port that FLARE had chosen."""


def run(job, workspace, sites):
    """Run a job to its end, anew where FLARE loses a site at the start; the path of its log."""
    log = workspace.with_suffix(".log")
    for _ in range(3):
        shutil.rmtree(workspace, ignore_errors=True)
        workspace.parent.mkdir(parents=True, exist_ok=True)
        code = _run(job, workspace, sites, log)
        if code is not None:
            break
    assert code == 0, log.read_text()
    return log


def _run(job, workspace, sites, log):
    """The simulator's exit code; None where it has lost a site."""
    command = [
        sys.executable, "-m", "nvflare.private.fed.app.simulator.simulator", str(job),
        "-w", str(workspace), "-c", ",".join(sites), "-t", str(len(sites)),
    ]  # fmt: skip
    with log.open("w") as output:
        process = psutil.Popen(command, stdout=output, stderr=subprocess.STDOUT)
    family = set()
    try:
        deadline = time.monotonic() + 240
        while process.poll() is None and time.monotonic() < deadline:
            with suppress(psutil.NoSuchProcess):
                family |= set(process.children(recursive=True))
            text = log.read_text()
            if any(said in text for said in LOST):
                return None
            time.sleep(0.3)
        assert process.poll() is not None, log.read_text()
        return process.returncode
    finally:
        for member in [*family, process]:  # a site leads a process group of its own
            with suppress(psutil.NoSuchProcess):
                member.kill()
        process.wait()


def processes(folder):
    """Processes of FLARE's simulator that work in a folder."""
    return [
        process
        for process in psutil.process_iter(["cmdline"])
        if any(str(folder) in word for word in process.info["cmdline"] or ())
    ]
