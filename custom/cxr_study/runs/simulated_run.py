"""One run of a job in FLARE's simulator: fresh or continued, with its sites alone if wanted."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

from rich.console import Console
from rich.progress import Progress

from cxr_study.common.progress import RoundProgress, bar, round_bars
from cxr_study.data.sites.site_data import check_disjoint, load_images
from cxr_study.evaluation import test_scores
from cxr_study.jobs import job_folder
from cxr_study.phantom.demo_data import embedded_initial_body, embedded_study
from cxr_study.runs.finished_run import write_facts
from cxr_study.runs.run_check import RunFolderError, check
from cxr_study.runs.run_request import StudyRun
from cxr_study.runs.simulation import SimulationError, simulate
from surgical_aggregation.site.training import tensorflow_setup


def run(study: StudyRun, *, own: bool, console: Console) -> None:
    """Run the job, and each site alone where asked, showing progress.

    "Alone" is the same job with one site: as many epochs, the same recipe, nobody to share with.

    Raises:
        RunFolderError: The run's folder exists.
        SimulationError: A job failed.
        ValueError: See `study_check.check`; or what a site file names is unusable.
    """
    if study.folder.exists():
        raise RunFolderError(
            f"a run needs a new folder; {study.folder} exists. Remove it, or give another --out."
        )
    check(study, own=own)
    if study.site_files is not None:
        size = {**job_folder.knobs(study.job), **study.settings}["image_size"]
        prepare(study.site_files, study.sites, int(str(size)))
    job = study.folder / "job"
    job_folder.copy(
        study.job, job, sites=study.sites, settings=study.settings, per_site=study.per_site
    )
    write_facts(study.folder, study.site_files)
    if study.site_files is None:
        embedded_study()
    if study.start(study.workspace) is None:
        embedded_initial_body()
    alone = {
        "min_clients": 1,
        "threads": max(1, tensorflow_setup.cores() // len(study.sites)),
    }
    stop = Event()
    with round_bars(console) as progress:
        _simulate(study, job, study.workspace, study.sites, "federated run", progress, stop)
        if own:
            with ThreadPoolExecutor(len(study.sites)) as pool:
                pending = []
                for site in study.sites:
                    own_job = study.folder / "own" / f"{site}-job"
                    job_folder.copy(
                        study.job,
                        own_job,
                        sites=[site],
                        settings={**study.settings, **study.per_site.get(site, {}), **alone},
                    )
                    pending.append(
                        pool.submit(
                            _simulate, study, own_job, study.own_workspace(site), (site,),
                            f"{site} alone", progress, stop,
                        )
                    )  # fmt: skip
                try:
                    for outcome in pending:
                        outcome.result()
                except BaseException:  # an interrupt too: the pool would wait for the other sites
                    stop.set()
                    raise


def prepare(site_files: Path, sites: Sequence[str], size: int) -> None:
    """Find out what is wrong with the sites' data before anything starts, and decode it once."""
    checked = [test_scores.read_labels(site_files / f"{site}.yaml")[0] for site in sites]
    check_disjoint(checked)
    for labels in checked:
        with bar(f"{labels.site.site}: decoding images") as report:
            load_images(labels, size, progress=report)


def _simulate(
    study: StudyRun,
    job: Path,
    workspace: Path,
    sites: Sequence[str],
    title: str,
    progress: Progress,
    stop: Event,
) -> None:
    total = int(str(job_folder.knobs(job)["num_rounds"]))
    shown = RoundProgress(progress, title, total)

    def watch(events: list[dict]) -> None:
        if stop.is_set():
            raise SimulationError(f"{title} was stopped, because another run was.")
        best = [event for event in events if event["event"] == "best"]
        shown.show(
            sum(event["event"] == "round" for event in events),
            best[-1] if best else None,
            any(event["event"] == "stopped" for event in events),
        )

    simulate(
        job, workspace, sites, environment=study.environment(workspace),
        states=study.states(workspace, sites), watch=watch,
    )  # fmt: skip
