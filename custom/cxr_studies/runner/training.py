"""The training of a run: in FLARE's simulator, in a POC, or without a federation.

An interrupted training is continued from its last round in the simulator, and repeated elsewhere.
"""

from __future__ import annotations

import shutil
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import fmean
from typing import Any

from filelock import FileLock
from rich.console import Console

from cxr_deployment import poc_run
from cxr_studies.baseline import BEST_FILE, LAST_FILE, ROUNDS_FILE, baseline_run
from cxr_studies.baseline.baseline_run import BaselineRun
from cxr_studies.plan import run_settings
from cxr_studies.plan.run_folder import SERVER, Run, Trained
from cxr_study.jobs import job_export
from cxr_study.jobs.job import Job
from cxr_study.jobs.methods import METHODS
from cxr_study.runs import finished_run, job_results
from cxr_study.runs.finished_run import checkpoint_folder, server_folder
from cxr_study.runs.job_results import METRICS, json_lines, read_events
from cxr_study.runs.run_request import RunRequest
from cxr_study.runs.simulator_process import LostSiteError, simulate
from surgical_aggregation.aggregation import batch_norm_strategy as strategies
from surgical_aggregation.checkpoints.checkpoint import load
from surgical_aggregation.server.models import model_files
from surgical_aggregation.site import site_memory

Models = Mapping[str, Path]
"""Site -> checkpoint of its own model, or of the global one; with own models also `SERVER` -> its.
"""

OnRound = Callable[[int], None]
"""Called with the number of rounds made so far."""

_ATTEMPTS = 3
"""A run that lost a site's process, e.g. to a full memory, is continued from its last round."""

_POLL = 1.0
"""Seconds between two reads of a run's record."""


def train(run: Run, folder: Path, on_round: OnRound) -> tuple[Models, Trained]:
    """Train to the end.

    Args:
        run: The run.
        folder: For jobs, workspaces and models.
        on_round: Called with the number of rounds made so far.

    Returns:
        Checkpoints of the models to test, and the rest of the result.

    Raises:
        SimulationError: A job failed in the simulator.
        PocError: The POC cannot be prepared or started.
        DeployedRunError: A job failed in a POC.
        ValueError: A setting, a site file or the initial body is unusable.
    """
    if not run.row.federated:
        return without_federation(run, folder, on_round)
    return (in_poc if run.where["project"] else in_simulator)(run, folder, on_round)


def in_simulator(run: Run, folder: Path, on_round: OnRound) -> tuple[Models, Trained]:
    """Train in FLARE's simulator, from where an interruption has left it; see `train`.

    Each continuation has a workspace of its own, `part-<n>`, and starts from the last model of the
    one before.
    """
    for attempt in range(1, _ATTEMPTS + 1):
        parts = _workspaces(folder)
        last = folder / f"part-{len(parts)}"
        shutil.rmtree(last, ignore_errors=True)  # what is there has left no model to go on from
        try:
            _simulate(run, folder, parts, on_round)
            break
        except LostSiteError:
            if attempt == _ATTEMPTS:
                raise
    states = {site: checkpoint_folder(last, site) for site in run.where["sites"]}
    models = _models(run, checkpoint_folder(last), states)
    return models, federated(run, _rounds_made(last), [*map(server_folder, (*parts, last))])


def _workspaces(folder: Path) -> list[Path]:
    """FLARE's workspaces up to interruptions, each with a model after some round; oldest first."""
    parts: list[Path] = []
    while _rounds_made(part := folder / f"part-{len(parts)}"):
        parts.append(part)
    return parts


def _rounds_made(workspace: Path) -> int:
    """Number of rounds of the last model in a workspace; 0 without one."""
    path = checkpoint_folder(workspace) / model_files.LAST_FILE
    return int(load(path).manifest.get("round", 0)) if path.is_file() else 0


def _simulate(run: Run, folder: Path, parts: Sequence[Path], on_round: OnRound) -> None:
    """Make the rounds that are missing after `parts`, in a workspace of their own."""
    job, start, made = _job(run), Path(run.where["initial_body"]), 0
    states: dict[str, Path] = {}
    if parts:
        start = checkpoint_folder(parts[-1]) / model_files.LAST_FILE
        manifest = load(start).manifest
        made = int(manifest["round"])
        job = job.with_settings({"num_rounds": manifest.missing_rounds})
        own = {site: checkpoint_folder(parts[-1], site) for site in run.where["sites"]}
        states = {site: place for site, place in own.items() if site_memory.has_state(place)}
    exported = folder / f"job-{len(parts)}"
    shutil.rmtree(exported, ignore_errors=True)
    job_export.write(job, exported)
    simulate(
        exported,
        folder / f"part-{len(parts)}",
        environment={
            "CXR_SITES": run.where["site_files"],
            "CXR_INITIAL_BODY": str(start.absolute()),
        },
        states=states,
        watch=lambda events: on_round(made + sum(event["event"] == "round" for event in events)),
    )


def in_poc(run: Run, folder: Path, on_round: OnRound) -> tuple[Models, Trained]:
    """Train in a POC: real services, TLS and an admin's session; see `train`.

    Only one POC runs at a time; others wait for its lock.
    """
    home, where = folder / "run", run.where
    job = _job(run, initial_body=where["initial_body"])
    request = RunRequest(job, home, Path(where["site_files"]))
    with FileLock(folder.parents[1] / ".poc.lock"):
        poc_run.system(request).stop()
        shutil.rmtree(folder, ignore_errors=True)
        with _watched(home, on_round):
            poc_run.run(request, Path(where["project"]), Console(file=sys.stderr))
    finished = finished_run.finished_run(home)
    models = _models(run, finished.servers[-1] / "models", finished.states)
    return models, federated(run, job_results.rounds_run(*finished.servers), finished.servers)


@contextmanager
def _watched(home: Path, on_round: OnRound) -> Iterator[None]:
    """Report the rounds of a POC's newest job while the body of a `with` block runs."""
    over = threading.Event()

    def watch() -> None:
        while not over.wait(_POLL):
            records = home.glob("poc/system/*/prod_00/server/*/run_record.jsonl")
            events = [read_events(record.parent) for record in records]
            made = [sum(event["event"] == "round" for event in each) for each in events]
            on_round(max(made, default=0))

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()


def _job(run: Run, **more: object) -> Job:
    """The job of a federation, with some more settings."""
    what, sites = run.what, tuple(run.where["sites"])
    given = {**what["given"], **more}
    own = what.get("per_site", {})
    return run_settings.job_of(run.row, sites, what["union"], what["preset"], given, own)


def _is_personal(run: Run) -> bool:
    """Whether every site of a federation ends with a model of its own."""
    head = METHODS[run.row.method].personal_head
    return strategies.has_personal(run.row.job_strategy, personal_head=head)


def _wants_last_model(run: Run) -> bool:
    """Whether the model of the last round is tested, not the best one."""
    return bool(run.what.get("model") == "last")


def _models(run: Run, server: Path, states: Mapping[str, Path]) -> Models:
    """Models of a federation, by the folder of the server's and those of the sites' own files."""
    common = server / (model_files.LAST_FILE if _wants_last_model(run) else model_files.BEST_FILE)
    if not _is_personal(run):
        return dict.fromkeys(run.where["sites"], common)
    own = site_memory.LAST_FILE if _wants_last_model(run) else site_memory.BEST_FILE
    models = {site: folder / own for site, folder in states.items()}
    # Where heads stay at the sites, the server's model has no column.
    return models if METHODS[run.row.method].personal_head else {**models, SERVER: common}


def federated(run: Run, rounds: int, servers: Sequence[Path]) -> Trained:
    """The result of a federation, without its models.

    Args:
        run: The run.
        rounds: Number of rounds that were made.
        servers: Server's folders of its jobs, oldest first.
    """
    measured = job_results.rounds(*servers, personal=_is_personal(run))
    sites = [[site.validation_auroc for site in each.sites.values()] for each in measured]
    # Of each round; one that was made again is the later part's.
    events = {e["round"]: e for each in servers for e in read_events(each) if e["event"] == "round"}
    return Trained(
        rounds=rounds,
        losses=tuple(each.mean_validation_bce for each in measured),
        aurocs=tuple(map(_mean, sites)),
        # The last of the jobs may have made no round, only what comes after them.
        images=next(filter(None, map(_images, reversed(servers))), 0),
        column_similarity=tuple(events[number]["column_similarity"] for number in sorted(events)),
    )


def _images(server: Path) -> int:
    """Training images that the sites of a job together went through in its last round."""
    lines = json_lines(server / METRICS)
    return sum(site["weight"] for site in lines[-1]["sites"]) if lines else 0


def without_federation(run: Run, folder: Path, on_round: OnRound) -> tuple[Models, Trained]:
    """Train each site alone, or all data in one place, in this process; see `train`.

    Sites that train alone do so one after the other. The number of rounds is that of the site that
    made most, and losses and AUROCs are given for the rounds that all of them made.
    """
    what, where, sites = run.what, run.where, tuple(run.where["sites"])
    models: dict[str, Path] = {}
    measured: list[list[dict[str, Any]]] = []
    for group in [sites] if run.row.pooled else [(site,) for site in sites]:
        out = folder / "-".join(group)
        given = what["union"], what["preset"], what["given"], what.get("per_site", {})
        settings = run_settings.all_settings(run.row, group, *given)
        method, files = run_settings.baseline_method(run.row), Path(where["site_files"])
        alone = BaselineRun(method, group, settings, out, files, Path(where["initial_body"]))
        baseline_run.train(alone, lambda made, _: on_round(made))
        measured.append(json_lines(out / ROUNDS_FILE))
        models |= dict.fromkeys(group, out / (LAST_FILE if _wants_last_model(run) else BEST_FILE))
    common = list(zip(*measured, strict=False))  # the rounds that all of them made
    return models, Trained(
        rounds=max(map(len, measured)) - 1,
        losses=tuple(_mean([each["mean_validation_bce"] for each in lines]) for lines in common),
        aurocs=tuple(_mean([each["mean_validation_auroc"] for each in lines]) for lines in common),
        images=sum(lines[0]["images"] for lines in measured),
    )


def _mean(values: Sequence[float | None]) -> float | None:
    """Mean of the values; None where one of them is None, or there is none."""
    known = [value for value in values if value is not None]
    return fmean(known) if known and len(known) == len(values) else None
