"""The command line: `surgagg`."""

from __future__ import annotations

import json
import shutil
import signal
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from cxr_study import cli_data, job_folder
from cxr_study.real_study import write_nih_study
from cxr_study.report.console import print_summary
from cxr_study.simulation import SimulationError
from cxr_study.study_run import RunFolderError, StudyRun, report, run
from surgical_aggregation import __version__

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    help="Train one chest X-ray model with hospitals that label different findings.",
    epilog="Example:  surgagg demo      Exit codes: 0 done, 1 a job failed, 2 wrong use.",
)
app.add_typer(cli_data.app, name="data")
app.command(epilog="Example:  surgagg classes sites/*.yaml")(cli_data.classes)
console = Console()

Out = Annotated[Path, typer.Option(help="New folder for everything the run makes.")]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KNOB=VALUE", help="Set a knob of the job; may be repeated."),
]
Force = Annotated[bool, typer.Option(help="Remove --out first if it is a run's folder.")]
Own = Annotated[bool, typer.Option(help="Also train each site alone, for comparison.")]


@app.command(epilog="Example:  surgagg demo --out runs/demo --force")
def demo(
    out: Out = Path("runs/demo"),
    job: Annotated[Path, typer.Option(help="Job folder.")] = Path("jobs/surgical"),
    settings: Settings = None,
    force: Force = False,
) -> None:
    """Run surgical aggregation on the phantom study, and write a report.

    Two sites (NIH-like, 14 classes; CheXpert-like, 13; union 20) in FLARE's simulator, then each
    site alone for comparison.
    """
    study = StudyRun(job, out, job_folder.sites(job), None, None, _parse(settings))
    _run_and_report(study, True, "Surgical aggregation on the phantom study", force)


@app.command(
    "run",
    epilog="Example:  surgagg run jobs/surgical --site-files sites --sites a,b --set num_rounds=20",
)
def run_job(
    job: Annotated[Path, typer.Argument(help="Job folder, e.g. jobs/surgical.")],
    out: Out = Path("runs/run"),
    sites: Annotated[str, typer.Option(help="Names, by comma. Default: the job's.")] = "",
    site_files: Annotated[
        Path | None, typer.Option(help="Folder of <site>.yaml. Default: the phantom study.")
    ] = None,
    initial_body: Annotated[
        Path | None, typer.Option(help="Checkpoint to start from. Default: the phantom study's.")
    ] = None,
    settings: Settings = None,
    own: Own = False,
    force: Force = False,
) -> None:
    """Run a job in FLARE's simulator, and write a report."""
    names = tuple(name.strip() for name in sites.split(",")) if sites else job_folder.sites(job)
    study = StudyRun(job, out, names, site_files, initial_body, _parse(settings))
    _run_and_report(study, own, f"{job.name} on {', '.join(names)}", force)


@app.command(epilog="Example:  surgagg real data/nih --set num_rounds=5")
def real(
    nih: Annotated[Path, typer.Argument(help="Folder of Data_Entry_2017*.csv and the images.")],
    out: Out = Path("runs/real"),
    job: Annotated[Path, typer.Option(help="Job folder.")] = Path("jobs/surgical"),
    settings: Settings = None,
    own: Own = True,
    initial_body: Annotated[
        Path | None, typer.Option(help="Checkpoint to start from. Default: the phantom study's.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the cut into sites and splits.")] = 0,
    force: Force = False,
) -> None:
    """Cut the real NIH ChestX-ray14 into two sites with the published class sets, and run a job.

    Patients are split 70/10/20. Any part of the images will do; rows without an image are left out.
    """
    _make_room(out, force)
    data = out.with_name(f"{out.name}-sites")
    _make_room(data, force, "sites/nih-1.yaml")
    written = write_nih_study(nih, data, seed=seed)
    names = tuple(path.stem for path in written)
    study = StudyRun(job, out, names, written[0].parent, initial_body, _parse(settings))
    _run_and_report(study, own, f"{job.name} on NIH ChestX-ray14 images in two sites", force)


@app.command(epilog="Example:  surgagg init initial.npz --backbone densenet121 --weights imagenet")
def init(
    file: Annotated[Path, typer.Argument(help="Checkpoint to write.")],
    backbone: Annotated[str, typer.Option(help="densenet121 or small_densenet.")] = "densenet121",
    weights: Annotated[
        str, typer.Option(help="imagenet, none (random), or a Keras weights file.")
    ] = "imagenet",
    image_size: Annotated[int, typer.Option(help="Side of the images, pixels.")] = 224,
    hidden: Annotated[int, typer.Option(help="Units between pooling and head; 0: none.")] = 0,
    seed: Annotated[int, typer.Option(help="Of random weights.")] = 0,
) -> None:
    """Make the initial body that every site of a run starts from."""
    from surgical_aggregation import tensorflow_runtime
    from surgical_aggregation.checkpoint import save

    tensorflow_runtime.configure(tensorflow_runtime.cores(), seed)
    from cxr_study.model import build, initial_body

    model = build(
        backbone,
        1,
        image_size=image_size,
        hidden=hidden,
        weights=None if weights == "none" else weights,
    )
    checkpoint = initial_body(
        model, backbone=backbone, image_size=image_size, hidden=hidden, weights=weights, seed=seed
    )
    save(checkpoint, file)
    digest = checkpoint.manifest["initial_body_sha256"]
    _say(f"{file}: {len(checkpoint.variables)} variables, sha256 {digest}")


def _version(wanted: bool) -> None:
    if wanted:
        console.print(__version__)
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say the version.")
    ] = False,
) -> None:
    pass


def _run_and_report(study: StudyRun, own: bool, title: str, force: bool) -> None:
    _make_room(study.folder, force)
    run(study, own=own, console=console)
    summary, html = report(study, own=own, title=title, console=console)
    print_summary(summary, console)
    _say(f"report   {html}")
    _say(f"summary  {html.with_name('summary.json')}")
    _say(f"models   {study.workspace / 'server' / 'checkpoints' / 'simulate_job'}")


def _make_room(folder: Path, force: bool, mark: str = "job/meta.json") -> None:
    """Remove a folder of an earlier run where that is wanted; `mark` tells it from any other."""
    if force and folder.exists():
        if not (folder / mark).is_file():
            raise RunFolderError(
                f"only what an earlier run made is removed; {folder} holds no {mark}. Remove it "
                "yourself, or give another --out."
            )
        shutil.rmtree(folder)
    if folder.exists():
        raise RunFolderError(
            f"a run needs a new folder; {folder} exists. Give another --out, or --force."
        )


def _say(text: str, to: Console = console) -> None:
    """Print a line as it is: nothing in a path or a message is markup, or broken off."""
    to.print(text, markup=False, highlight=False, soft_wrap=True)


def _parse(settings: list[str] | None) -> dict[str, object]:
    parsed: dict[str, object] = {}
    for item in settings or []:
        name, separator, value = item.partition("=")
        if not separator:
            raise job_folder.JobError(f"--set needs KNOB=VALUE, e.g. num_rounds=20; got {item!r}.")
        try:
            parsed[name] = json.loads(value)
        except json.JSONDecodeError:
            parsed[name] = value
    return parsed


def main() -> None:
    """Run the command; a user's mistake is one line on standard error and exit code 2."""
    # A plain SIGTERM would end this process alone and leave the simulator's behind.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        app()
    except (ValueError, OSError) as error:
        _say(f"surgagg: {error}", Console(stderr=True))
        sys.exit(2)
    except SimulationError as error:
        _say(f"surgagg: {error}", Console(stderr=True))
        sys.exit(1)
