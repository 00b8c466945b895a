"""One run of a job in FLARE's simulator: fresh or continued, with its sites alone if wanted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import Literal

from rich.console import Console
from rich.progress import Progress

from cxr_study import evaluation, job_folder
from cxr_study.embedded import embedded_initial_body, embedded_study
from cxr_study.finished_run import write_facts
from cxr_study.job_settings import Settings
from cxr_study.progress import bar
from cxr_study.round_progress import RoundProgress, round_bars
from cxr_study.simulation import SimulationError, checkpoint_folder, simulate
from cxr_study.site_data import check_disjoint, load_images
from cxr_study.study_check import RunFolderError, check
from surgical_aggregation import tensorflow_runtime
from surgical_aggregation.site_state import has_state


@dataclass(frozen=True)
class Earlier:
    """A run that another one continues.

    Attributes:
        folder: Its folder.
        model: Its model to start from. From the last one the sites go on with the state that they
            had; with the best one they start theirs afresh.
    """

    folder: Path
    model: Literal["last", "best"] = "last"


@dataclass(frozen=True)
class StudyRun:
    """A run of a job in FLARE's simulator.

    Attributes:
        job: Job folder.
        folder: New folder for everything the run makes.
        sites: Names of the sites.
        site_files: Folder of <site>.yaml; None: the embedded phantom study.
        initial_body: Checkpoint to start from; None: the embedded study's.
        settings: Knob -> value, beside the job's own.
        per_site: Site -> knob -> value, at that site alone.
        earlier: The run that this one continues, from its model instead of `initial_body`; None: a
            fresh run.
    """

    job: Path
    folder: Path
    sites: tuple[str, ...]
    site_files: Path | None
    initial_body: Path | None
    settings: Settings
    per_site: Mapping[str, Settings] = field(default_factory=dict)
    earlier: Earlier | None = None

    @property
    def workspace(self) -> Path:
        """FLARE's workspace of the federated run."""
        return self.folder / "workspace"

    def own_workspace(self, site: str) -> Path:
        """FLARE's workspace of the run of one site alone."""
        return self.folder / "own" / site

    def start(self, workspace: Path) -> Path | None:
        """Checkpoint that the run in a workspace starts from; None: the embedded study's."""
        if self.earlier is None:
            return self.initial_body
        return checkpoint_folder(self._before(workspace)) / f"{self.earlier.model}.npz"

    def states(self, workspace: Path, sites: Sequence[str]) -> dict[str, Path]:
        """Site -> folder of its state, for the sites that go on with one in a workspace."""
        if self.earlier is None or self.earlier.model == "best":
            return {}
        before = {site: checkpoint_folder(self._before(workspace), site) for site in sites}
        return {site: folder for site, folder in before.items() if has_state(folder)}

    def environment(self, workspace: Path) -> dict[str, str]:
        """Variables that tell the job in a workspace where sites and initial body are."""
        values = {"CXR_SITES": self.site_files, "CXR_INITIAL_BODY": self.start(workspace)}
        return {name: str(path.absolute()) for name, path in values.items() if path is not None}

    def _before(self, workspace: Path) -> Path:
        """The earlier run's workspace of the same name."""
        folder = self.folder if self.earlier is None else self.earlier.folder
        return folder / workspace.relative_to(self.folder)


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
        "threads": max(1, tensorflow_runtime.cores() // len(study.sites)),
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
    checked = [evaluation.read_labels(site_files / f"{site}.yaml")[0] for site in sites]
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
