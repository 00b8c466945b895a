"""The command line: `surgagg`."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from cxr_study.cli import checkpoint as cli_checkpoint
from cxr_study.cli import compare as cli_compare
from cxr_study.cli import data as cli_data
from cxr_study.cli import job as cli_job
from cxr_study.cli import kit, submit, train
from cxr_study.cli import poc as cli_poc
from cxr_study.cli import report as cli_report
from cxr_study.cli import run as cli_run
from cxr_study.cli import study as cli_study
from cxr_study.cli.run import check_room, console, make_room, run_and_report, say, split
from cxr_study.data.readers.official_files import official_files
from cxr_study.jobs import job_folder, job_templates, presets, settings
from cxr_study.jobs.network_check import check_network
from cxr_study.runs.job_failure import JobFailedError
from cxr_study.runs.run_request import StudyRun
from cxr_study.training.network import BACKBONES
from surgical_aggregation import __version__

_UsageError: Any = typer.BadParameter.__mro__[1]
"""click's, of which typer may have a copy of its own."""

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    help="Train one chest X-ray model with hospitals that label different findings.",
    epilog="Example:  surgagg demo      Exit codes: 0 done, 1 a job failed, 2 wrong use.",
)
app.add_typer(cli_data.app, name="data")
app.add_typer(kit.app, name="kit")
app.add_typer(cli_poc.app, name="poc")
app.add_typer(cli_study.app, name="study")
app.command(epilog="Example:  surgagg classes sites/*.yaml")(cli_data.classes)
app.command("continue", epilog=cli_checkpoint.CONTINUE_EPILOG)(cli_checkpoint.continue_)
app.command(epilog=cli_checkpoint.RETIRE_EPILOG)(cli_checkpoint.retire)
app.command(epilog=cli_checkpoint.DECRYPT_EPILOG)(cli_checkpoint.decrypt)
app.command(epilog="Example:  surgagg train individual --out runs/individual")(train.train)
app.command(epilog=cli_compare.EPILOG)(cli_compare.compare)
app.command("job", epilog=cli_job.EPILOG)(cli_job.job)
app.command(epilog=submit.EPILOG)(submit.submit)
app.command(epilog=cli_report.EPILOG)(cli_report.report)

REAL_SITES = ("nih-1", "nih-2")
"""Names of the sites that `real_study.write_nih_study` cuts NIH into."""

JobOption = Annotated[Path, typer.Option("--job", help="Job folder.")]


@app.command(epilog="Example:  surgagg demo --out runs/demo --force")
def demo(
    out: cli_run.Out = Path("runs/demo"),
    job: JobOption = Path("jobs/surgical"),
    knobs: cli_run.Settings = None,
    force: cli_run.Force = False,
) -> None:
    """Run a job on the phantom study, and write a report.

    Two sites (NIH-like, 14 classes; CheXpert-like, 13; union 20) in FLARE's simulator, then each
    site alone for comparison.
    """
    study = _study(job, out, job_folder.sites(job), None, None, None, knobs)
    run_and_report(study, True, f"{_title(job)} on the phantom study", force)


@app.command(
    "run",
    epilog="Example:  surgagg run jobs/surgical --site-files sites --sites a,b --set num_rounds=20",
)
def run_job(
    job: cli_run.Job,
    out: cli_run.Out = Path("runs/run"),
    sites: cli_run.Sites = "",
    site_files: cli_run.SiteFiles = None,
    initial_body: cli_run.InitialBody = None,
    preset: cli_run.Preset = None,
    knobs: cli_run.Settings = None,
    own: cli_run.Own = False,
    force: cli_run.Force = False,
) -> None:
    """Run a job in FLARE's simulator, and write a report."""
    names = split(sites) or job_folder.sites(job)
    study = _study(job, out, names, site_files, initial_body, preset, knobs)
    run_and_report(study, own, f"{job.name} on {', '.join(names)}", force)


@app.command(epilog="Example:  surgagg real data/nih --set num_rounds=5")
def real(
    nih: Annotated[Path, typer.Argument(help="Folder of Data_Entry_2017*.csv and the images.")],
    out: cli_run.Out = Path("runs/real"),
    job: JobOption = Path("jobs/surgical"),
    preset: cli_run.Preset = None,
    knobs: cli_run.Settings = None,
    own: cli_run.Own = True,
    initial_body: cli_run.InitialBody = None,
    seed: Annotated[int, typer.Option(help="Of the cut into sites and splits.")] = 0,
    force: cli_run.Force = False,
) -> None:
    """Cut the real NIH ChestX-ray14 into two sites with the published class sets, and run a job.

    Patients are split 70/10/20. Any part of the images will do; rows without an image are left out.
    """
    data = out.with_name(f"{out.name}-sites")
    rooms = {out: cli_run.MARK, data: f"sites/{REAL_SITES[0]}.yaml"}
    for folder, mark in rooms.items():
        check_room(folder, force, mark)
    official_files("nih", nih)
    study = _study(job, out, REAL_SITES, data / "sites", initial_body, preset, knobs)
    for folder, mark in rooms.items():
        make_room(folder, force, mark)
    from cxr_study.data.sites.partition import write_nih_study

    write_nih_study(nih, data, seed=seed)
    run_and_report(study, own, f"{job.name} on NIH ChestX-ray14 images in two sites", force)


@app.command(epilog="Example:  surgagg init initial.npz --backbone densenet121 --weights imagenet")
def init(
    file: Annotated[Path, typer.Argument(help="Checkpoint to write.")],
    backbone: Annotated[str, typer.Option(help=f"One of {', '.join(BACKBONES)}.")] = "densenet121",
    weights: Annotated[
        str, typer.Option(help="imagenet, none (random), or a Keras weights file.")
    ] = "imagenet",
    image_size: Annotated[int, typer.Option(help="Side of the images, pixels.")] = 224,
    hidden: Annotated[int, typer.Option(help="Units between pooling and head; 0: none.")] = 0,
    seed: Annotated[int, typer.Option(help="Of random weights.")] = 0,
) -> None:
    """Make the initial body that every site of a run starts from."""
    from surgical_aggregation.checkpoints.checkpoint import save
    from surgical_aggregation.site.training import tensorflow_setup

    tensorflow_setup.configure(tensorflow_setup.cores(), seed)
    from cxr_study.training.network import build
    from surgical_aggregation.site.contract.architecture import initial_body

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
    say(f"{file}: {len(checkpoint.variables)} variables, sha256 {digest}")
    if weights == "none":
        say("Random weights: take strategy fedavg or fedbn; fedbn+ freezes batch normalisation.")


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


def _study(
    job: Path,
    out: Path,
    sites: tuple[str, ...],
    site_files: Path | None,
    initial_body: Path | None,
    preset: str | None,
    knobs: list[str] | None,
) -> StudyRun:
    for_all, per_site = presets.apply(preset, *settings.parse(knobs or []), sites)
    job_folder.check(job, sites=sites, settings=for_all, per_site=per_site)
    network = {**job_folder.knobs(job), **for_all}
    if "backbone" in network:  # a census has none
        check_network(
            initial_body, backbone=str(network["backbone"]), hidden=int(str(network["hidden"]))
        )
    return StudyRun(job, out, sites, site_files, initial_body, for_all, per_site=per_site)


def _title(job: Path) -> str:
    """What the method of a job is called; of another job, the folder's name."""
    return job_templates.METHODS[job.name].title if job.name in job_templates.METHODS else job.name


def main() -> None:
    """Run the command; a user's mistake is one line on standard error and exit code 2."""
    # A plain SIGTERM would end this process alone and leave the simulator's behind.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        sys.exit(app(prog_name="surgagg", standalone_mode=False))
    except _UsageError as error:
        # By itself, typer draws a box, for which it loads a tenth of a second of rich.
        if message := error.format_message():  # none where the help has been shown instead
            help_ = f"{error.ctx.command_path} --help"
            say(f"surgagg: {message.rstrip('.')}. See {help_}.", Console(stderr=True))
        sys.exit(2)
    except (ValueError, OSError) as error:
        say(f"surgagg: {error}", Console(stderr=True))
        sys.exit(2)
    except JobFailedError as error:
        say(f"surgagg: {error}", Console(stderr=True))
        sys.exit(1)
