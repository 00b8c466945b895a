"""One run of a job, from its folder to its report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Event

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from cxr_study import evaluation, examples, job_folder, results
from cxr_study.embedded import embedded_initial_body, embedded_study
from cxr_study.progress import bar
from cxr_study.report.render import write_report
from cxr_study.report.summary import (
    Best,
    ClassAuroc,
    MeanAuroc,
    Model,
    SiteData,
    Splits,
    Summary,
)
from cxr_study.simulation import SimulationError, simulate
from cxr_study.site_data import check_disjoint, load_images
from surgical_aggregation import __version__, tensorflow_runtime, wire
from surgical_aggregation.checkpoint import Checkpoint, load

PHANTOM_NOTE = "They show the method's behaviour, not clinical performance."


class RunFolderError(ValueError):
    """A run's folder is in the way, or does not hold what is needed."""


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
    """

    job: Path
    folder: Path
    sites: tuple[str, ...]
    site_files: Path | None
    initial_body: Path | None
    settings: Mapping[str, object]

    @property
    def workspace(self) -> Path:
        """FLARE's workspace of the federated run."""
        return self.folder / "workspace"

    def own_workspace(self, site: str) -> Path:
        """FLARE's workspace of the run of one site alone."""
        return self.folder / "own" / site

    def environment(self) -> dict[str, str]:
        """Variables that tell the job where sites and initial body are."""
        values = {"CXR_SITES": self.site_files, "CXR_INITIAL_BODY": self.initial_body}
        return {name: str(path.absolute()) for name, path in values.items() if path is not None}


def run(study: StudyRun, *, own: bool, console: Console) -> None:
    """Run the job, and each site alone where asked, showing progress.

    "Alone" is the same job with one site: as many epochs, the same recipe, nobody to share with.

    Raises:
        RunFolderError: The run's folder exists, or has a space in its path.
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
    needed = knobs["min_clients"]
    if int(str(needed)) > len(study.sites):
        raise job_folder.JobError(
            f"a round of this job needs the results of {needed} sites; got "
            f"{', '.join(study.sites)}. Add sites, or --set min_clients={len(study.sites)}."
        )
    if study.site_files is not None:
        _prepare(study.site_files, study.sites, int(str(knobs["image_size"])))
    job = study.folder / "job"
    job_folder.copy(study.job, job, sites=study.sites, settings=study.settings)
    if study.site_files is None:
        embedded_study()
    if study.initial_body is None:
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
                        study.job, own_job, sites=[site], settings={**study.settings, **alone}
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


def _prepare(site_files: Path, sites: Sequence[str], size: int) -> None:
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
        progress.update(task, completed=done, now=f"round {done}/{total}{loss}")
        if done > told and not progress.console.is_terminal:  # where a bar cannot be drawn
            told = done
            progress.console.print(f"{title}: round {done}/{total}{loss}", highlight=False)

    simulate(job, workspace, sites, environment=study.environment(), watch=watch)


def report(study: StudyRun, *, own: bool, title: str, console: Console) -> tuple[Summary, Path]:
    """Evaluate a finished run on every site's test split and write its report.

    Args:
        study: The run.
        own: Whether each site also ran alone.
        title: Heading of the report.
        console: Where to say what is being done.

    Returns:
        What the report says, and the path of the HTML file.

    Raises:
        ResultsError: The run has not finished.
    """
    knobs = job_folder.knobs(study.folder / "job")
    network = evaluation.Network(
        str(knobs["backbone"]), int(str(knobs["image_size"])), int(str(knobs["hidden"]))
    )
    tensorflow_runtime.configure(tensorflow_runtime.cores(), int(str(knobs["seed"])))
    best = load(results.best_checkpoint(study.workspace))
    union = wire.classes_of(best.variables)
    site_files = study.site_files or embedded_study().sites
    tests: list[ClassAuroc] = []
    means: list[MeanAuroc] = []
    pictures = []
    sites: dict[str, SiteData] = {}
    for site in study.sites:
        console.print(f"evaluating on the test split of {site} ...", highlight=False)
        split = evaluation.load_test_split(site_files / f"{site}.yaml", union, network.image_size)
        sites[site] = _site_data(split)
        models: dict[Model, Checkpoint] = {"global": best}
        if own:
            models["own"] = load(results.best_checkpoint(study.own_workspace(site)))
        for name, checkpoint in models.items():
            probabilities = evaluation.predict(checkpoint, network, split.pixels)
            rows, row_means = evaluation.score(
                name, split, probabilities, union, int(str(knobs["seed"]))
            )
            tests += rows
            means += row_means
            if name == "global":
                pictures += examples.choose(split, probabilities, union)
    phantom = study.site_files is None
    summary = Summary(
        title=title,
        job=study.job.name,
        data="phantom" if phantom else "real",
        note=PHANTOM_NOTE if phantom else "",
        version=__version__,
        backbone=network.backbone,
        image_size=network.image_size,
        seed=int(str(knobs["seed"])),
        num_rounds=int(str(knobs["num_rounds"])),
        wall_seconds=results.wall_seconds(study.workspace),
        best=Best(best.manifest["best"]["round"], best.manifest["best"]["value"]),
        union=union,
        sites=sites,
        taught_by=_taught_by(best, union, study.sites),
        rounds=results.rounds(study.workspace),
        refusals=results.refusals(study.workspace),
        test=tuple(tests),
        means=tuple(means),
    )
    return summary, write_report(summary, pictures, study.folder / "report")


def _taught_by(
    best: Checkpoint, union: Sequence[str], sites: tuple[str, ...]
) -> dict[str, tuple[str, ...]]:
    """Class -> sites; all of them where the aggregator (FLARE's stock one) does not say."""
    classes = best.manifest.get("classes", {})
    return {name: tuple(classes[name]["sites"]) if name in classes else sites for name in union}


def _site_data(split: evaluation.TestSplit) -> SiteData:
    images = split.table["split"].value_counts()
    patients = split.table.drop_duplicates("patient")["split"].value_counts()
    return SiteData(
        classes=tuple(sorted(split.held)),
        images=Splits(*(int(images.get(name, 0)) for name in ("train", "validation", "test"))),
        patients=Splits(*(int(patients.get(name, 0)) for name in ("train", "validation", "test"))),
    )
