"""A run of a job in FLARE's simulator, new or continued, with optional runs for comparison."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, count
from pathlib import Path
from threading import Event
from typing import Any

from rich.console import Console
from rich.progress import Progress
from rich.text import Text

from cxr_study.common.offered_data import demo_data
from cxr_study.common.progress import RoundProgress, round_bars
from cxr_study.data.sites.site_data import load_images, notes_before_training
from cxr_study.data.sites.site_file import read_site_file
from cxr_study.evaluation import test_split
from cxr_study.jobs import job_export
from cxr_study.jobs.job import Job
from cxr_study.jobs.methods import BEYOND, METHODS
from cxr_study.jobs.settings import JobSettings
from cxr_study.runs import finished_run
from cxr_study.runs.finished_run import JobFailedError
from cxr_study.runs.job_results import RecordEvent, progress, rounds_run, stopped_early
from cxr_study.runs.run_request import RunRequest
from cxr_study.runs.simulator_process import SimulationError, simulate
from surgical_aggregation.checkpoints.checkpoint import load
from surgical_aggregation.site.training import tensorflow_setup

_Simulation = tuple[Job, Path, Path, str]
"""A job, its folder, its workspace, and its title in the progress display."""

FAILED = "-failed"
"""Suffix of the folder to which a run is moved that failed before its first round."""


def prepare(site_files: Path | None, sites: Sequence[str], size: int) -> None:
    """Check the sites' data, and decode and cache their images, before a run's folder is changed.

    Args:
        site_files: Folder of <site>.yaml. None: the phantom, which is drawn if it does not exist.
        sites: Names of the sites.
        size: Side of the network's input, pixels.

    Raises:
        ValueError: A file that a site file names is not usable.
    """
    if site_files is None:
        demo_data().site_files()
        return
    checked = [test_split.read_labels(site_files / f"{site}.yaml")[0] for site in sites]
    for note in notes_before_training(checked):
        Console().print(Text(f"note: {note}"), soft_wrap=True)
    for labels in checked:
        load_images(labels, size)


def resume_instructions(request: RunRequest) -> str:
    """Describe how far an interrupted run came, and how to resume it.

    One that was interrupted before its first round is moved aside, as in `move_failed_run_aside`.

    Args:
        request: The run.
    """
    server = finished_run.server_folder(request.workspace)
    made = rounds_run(server)
    planned = request.job.at_server.num_rounds
    first, here = _round(request.start(request.workspace)), request.folder
    if not made:
        aside = _move_aside(request)
        return f"interrupted before the first round; its logs are in {aside}. Start it again."
    if made >= planned or stopped_early(server):
        return f"interrupted after the last round. Report it: surgagg report {request.folder}"
    return (
        f"interrupted after {first + made} of {first + planned} rounds. Resume: surgagg continue "
        f"{here} --out {here}-continued; report the rounds made: surgagg report {here}"
    )


def move_failed_run_aside(request: RunRequest, error: JobFailedError) -> JobFailedError:
    """Rename the folder of a run that failed before its first round, so that it can be rerun.

    The new name ends with `FAILED`. A folder of this name is deleted if it is that of a run without
    a round; else a number is appended. The folder of a run with at least one round is kept.

    Args:
        request: The run.
        error: Why it failed.

    Returns:
        The error to raise: `error`, with the new paths of the logs.
    """
    if not request.folder.exists() or rounds_run(finished_run.server_folder(request.workspace)):
        return error
    aside = _move_aside(request)
    return type(error)(str(error).replace(str(request.folder), str(aside)))


def _move_aside(request: RunRequest) -> Path:
    first = request.folder.with_name(f"{request.folder.name}{FAILED}")
    others = (first.with_name(f"{first.name}-{number}") for number in count(2))
    aside = next(p for p in chain([first], others) if not p.exists() or _has_no_round(p))
    shutil.rmtree(aside, ignore_errors=True)
    if request.folder.exists():
        request.folder.rename(aside)
    return aside


def _has_no_round(folder: Path) -> bool:
    """Whether a folder is that of a simulated run that has no round."""
    is_run = (folder / finished_run.MARKER).is_file() and (folder / "workspace").is_dir()
    return is_run and not rounds_run(finished_run.server_folder(folder / "workspace"))


def run(request: RunRequest, *, console: Console) -> None:
    """Run a job that has passed `run_request.check` and `prepare`, and its runs for comparison.

    With `request.published` the job is also run with the method as published. With
    `request.local_models` each site also runs it alone: the same job with one site, with the same
    epochs and recipe, but without the server's optimizer, which would slow the training of a single
    site. When a run is continued, the sites alone end with the same round as the federation;
    one that is ahead of it makes one more.

    Args:
        request: The run. Its folder gets the layout described in `finished_run`.
        console: Where progress is reported.

    Raises:
        SimulationError: A job failed; the others are stopped.
        ValueError: The run's folder exists.
    """
    federated = [(request.job, request.folder / "job", request.workspace, "federated run")]
    if request.published:
        home = request.folder / finished_run.PUBLISHED
        as_published = (_published(request.job), home / "job", home / "workspace", "as published")
        federated.append(as_published)
    alone = list(_alone(request)) if request.local_models else []
    for job, folder, _, _ in (*federated, *alone):
        job_export.write(job, folder)
    splits = _splits(request)
    facts = finished_run.RunFacts(request.site_files, preset=request.preset, splits=splits)
    facts.write(request.folder)
    if request.earlier is not None and (start := request.start(request.workspace)):
        shutil.copy(start, request.folder / finished_run.BEFORE)
    # The phantom's processes are small. With a hospital's data memory is enough for one run only.
    at_once = [[*federated, *alone]]
    if request.site_files is not None:
        at_once = [*([each] for each in federated), alone]
    with round_bars(console) as bars:
        for simulations in filter(None, at_once):
            _simulate_all(request, simulations, bars)


def _splits(request: RunRequest) -> dict[str, tuple[str, str]]:
    """Site -> its split file and the file's digest; empty for the phantom."""
    if request.site_files is None:
        return {}
    files = {site: request.site_files / f"{site}.yaml" for site in request.job.sites}
    splits = {site: read_site_file(file).split for site, file in files.items() if file.is_file()}
    return {site: (str(split), finished_run.file_digest(split)) for site, split in splits.items()}


def _alone(request: RunRequest) -> Iterator[_Simulation]:
    """The job of each site alone."""
    job = request.job
    settings: dict[str, object] = {
        "min_clients": 1,
        "threads": max(1, tensorflow_setup.cores() // len(job.sites)),
    }
    if "server_optimizer" in job.settings:
        settings["server_optimizer"] = "none"
    for site in job.sites:
        workspace = request.local_workspace(site)
        own = {**job.per_site.get(site, {}), **settings}
        if request.earlier is not None:
            # As many as the federation in total, but 0 would mean the rounds that it lacks.
            first, made = (_round(request.start(each)) for each in (request.workspace, workspace))
            own["num_rounds"] = max(1, first + job.at_server.num_rounds - made)
        folder = request.folder / "local" / f"{site}-job"
        yield job.with_settings(own, sites=[site]), folder, workspace, f"{site} alone"


def _round(start: Path | None) -> int:
    """Number of rounds that a start model has gone through; 0 for an initial body."""
    manifest: Mapping[str, Any] = {}
    if start is not None and start.is_file():
        manifest = load(start).manifest
    return int(manifest.get("round", 0)) if "job" in manifest else 0


def _published(job: Job) -> Job:
    """The same job with the method as published."""
    off = {n: JobSettings.model_fields[n].default for n in BEYOND if n in job.settings}
    return job.with_settings({**off, "strategy": METHODS[job.method].strategy})


def _simulate_all(request: RunRequest, jobs: Sequence[_Simulation], bars: Progress) -> None:
    """Run jobs concurrently; if one fails, the others are stopped."""
    stop = Event()
    with ThreadPoolExecutor(len(jobs)) as pool:
        pending = [pool.submit(_simulate, request, job, bars, stop) for job in jobs]
        try:
            for outcome in pending:
                outcome.result()
        except BaseException:  # also after an interrupt; the pool would wait for the other jobs
            stop.set()
            raise


def _simulate(request: RunRequest, simulation: _Simulation, bars: Progress, stop: Event) -> None:
    """Run one job, show its rounds, and end it with an error once `stop` is set."""
    job, folder, workspace, title = simulation
    first = _round(request.start(workspace))  # a continued run counts on from the earlier rounds
    shown = RoundProgress(bars, title, first + job.at_server.num_rounds, first)

    def watch(events: list[RecordEvent]) -> None:
        if stop.is_set():
            raise SimulationError(f"{title} was stopped, because another run was.")
        if now := progress(events):
            shown.show(first + now.rounds, now.best, now.stopped)

    simulate(
        folder, workspace, environment=request.environment(workspace),
        states=request.states(workspace, job.sites), watch=watch,
    )  # fmt: skip
