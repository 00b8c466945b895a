"""One run of a job in FLARE's simulator: fresh or continued, with its sites alone if wanted."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import Literal

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from cxr_study import evaluation, job_folder
from cxr_study.embedded import embedded_initial_body, embedded_study
from cxr_study.job_folder import Settings
from cxr_study.progress import bar
from cxr_study.simulation import SimulationError, checkpoint_folder, simulate
from cxr_study.site_data import check_disjoint, load_images
from surgical_aggregation import tensorflow_runtime
from surgical_aggregation.site_state import has_state

RUN_FILE = "run.json"
"""In a run's folder: what a continued run needs to know beside the job."""


class RunFolderError(ValueError):
    """A run's folder is in the way, or does not hold what is needed."""


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
        RunFolderError: The run's folder exists, or has a space in its path; or the run to continue
            has no model to start from.
        JobError: The job folder or a knob is unusable, or there are too few sites.
        SiteFileError: A site file, or what it names, is unusable.
        SimulationError: A job failed.
    """
    if study.folder.exists():
        raise RunFolderError(
            f"a run needs a new folder; {study.folder} exists. Remove it, or give another --out."
        )
    if " " in str(study.folder.absolute()):
        raise RunFolderError(
            f"FLARE's simulator needs a folder without spaces in its path; got "
            f"{str(study.folder.absolute())!r}. Give another --out."
        )
    knobs = {**job_folder.knobs(study.job), **study.settings}
    if "num_rounds" not in knobs:
        raise job_folder.JobError(
            f"job {study.job.name!r} trains nothing, so there is nothing to report; run it with "
            f"nvflare simulator {study.job} -w <folder> -c {','.join(study.sites)} "
            f"-t {len(study.sites)}"
        )
    if job_folder.encrypted(study.job):
        raise job_folder.JobError(
            f"the models of job {study.job.name!r} are encrypted, so nobody here could evaluate "
            "them; submit it to servers and sites that were provisioned for homomorphic "
            "encryption (nvflare poc prepare -he), and open the model with `surgagg decrypt`."
        )
    needed = knobs["min_clients"]
    if int(str(needed)) > len(study.sites):
        raise job_folder.JobError(
            f"a round of this job needs the results of {needed} sites; got "
            f"{', '.join(study.sites)}. Add sites, or --set min_clients={len(study.sites)}."
        )
    if study.site_files is not None:
        prepare(study.site_files, study.sites, int(str(knobs["image_size"])))
    _check_start(study, own)
    job = study.folder / "job"
    job_folder.copy(
        study.job, job, sites=study.sites, settings=study.settings, per_site=study.per_site
    )
    facts = {"site_files": study.site_files and str(study.site_files.absolute())}
    (study.folder / RUN_FILE).write_text(json.dumps(facts) + "\n", encoding="utf-8")
    if study.site_files is None:
        embedded_study()
    if study.start(study.workspace) is None:
        embedded_initial_body()
    alone = {
        "min_clients": 1,
        "threads": max(1, tensorflow_runtime.cores() // len(study.sites)),
    }
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[now]}"),
        TimeElapsedColumn(),
    )
    stop = Event()
    with Progress(*columns, console=console) as progress:
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


def _check_start(study: StudyRun, own: bool) -> None:
    workspaces = [study.workspace]
    if own:
        workspaces += [study.own_workspace(site) for site in study.sites]
    for workspace in workspaces:
        start = study.start(workspace)
        if study.earlier is not None and start is not None and not start.is_file():
            raise RunFolderError(
                f"the run to continue needs {start}, which is not there: it ended before its first "
                "round, or that site was not in it. Run it anew, or without --own."
            )


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
    task = progress.add_task(title, total=total, now="starting")
    told = -1

    def watch(events: list[dict]) -> None:
        nonlocal told
        if stop.is_set():
            raise SimulationError(f"{title} was stopped, because another run was.")
        done = sum(event["event"] == "round" for event in events)
        best = [event for event in events if event["event"] == "best"]
        loss = f", best validation BCE {best[-1]['value']:.4f}" if best else ""
        if any(event["event"] == "stopped" for event in events):
            loss += ", stopped early"
        progress.update(task, completed=done, now=f"round {done}/{total}{loss}")
        if done > told and not progress.console.is_terminal:  # where a bar cannot be drawn
            told = done
            progress.console.print(f"{title}: round {done}/{total}{loss}", highlight=False)

    simulate(
        job, workspace, sites, environment=study.environment(workspace),
        states=study.states(workspace, sites), watch=watch,
    )  # fmt: skip
