"""A federated run of a study in a POC of its own: real services, TLS and an admin's session."""

from __future__ import annotations

import shutil
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock
from rich.console import Console

from cxr_studies.plan import method_job
from cxr_studies.runner.training import Trained, Training, federated
from cxr_studies.runner.training_process import Tell
from cxr_study.deployment import poc_run
from cxr_study.runs import finished_run, job_results
from cxr_study.runs.job_results import read_events
from cxr_study.runs.run_request import RunRequest
from surgical_aggregation.server.models import model_files
from surgical_aggregation.site import site_memory

_POLL = 1.0
"""Seconds between two looks at a run's record."""


def train(training: Training, project: Path, tell: Tell) -> Trained:
    """Train to the end; what an interruption has left is removed. One POC at a time.

    The project file of FLARE has the sites.

    Raises:
        PocError: The POC cannot be prepared or started.
        DeployedRunError: The job failed.
        ValueError: A setting, a site file or the initial body is unusable.
    """
    folder = training.folder / "run"
    job = training.job(initial_body=str(training.initial_body.absolute()))
    request = RunRequest(job, folder, training.site_files)
    with FileLock(training.folder.parents[1] / ".poc.lock"):
        poc_run.system(request).stop()
        shutil.rmtree(training.folder, ignore_errors=True)
        with _watched(folder, tell):
            poc_run.run(request, project, Console(file=sys.stderr))
    finished = finished_run.finished_run(folder)
    if method_job.is_personal(training.row):
        own = site_memory.LAST_FILE if training.last else site_memory.BEST_FILE
        models = {site: folder / own for site, folder in finished.states.items()}
    else:
        common = model_files.LAST_FILE if training.last else model_files.BEST_FILE
        models = dict.fromkeys(training.sites, finished.servers[-1] / "models" / common)
    return federated(
        training.row, models, job_results.rounds_run(*finished.servers), finished.servers
    )


@contextmanager
def _watched(run: Path, tell: Tell) -> Iterator[None]:
    """Say how many rounds a POC's newest job has made, while the body of a `with` block runs."""
    over = threading.Event()

    def watch() -> None:
        while not over.wait(_POLL):
            records = run.glob("poc/system/*/prod_00/server/*/run_record.jsonl")
            events = [read_events(record.parent) for record in records]
            made = [sum(event["event"] == "round" for event in each) for each in events]
            tell(max(made, default=0))

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()
