"""What the commands that run jobs share: their options, and a run from its folder to its report."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from cxr_study.jobs import presets
from cxr_study.runs.finished_run import finished_run
from cxr_study.runs.run_check import RunFolderError, check
from cxr_study.runs.run_request import StudyRun
from cxr_study.runs.simulator_folders import checkpoint_folder

console = Console()

MARK = "job/meta.json"
"""In a run's folder: what tells it from any other."""

Job = Annotated[Path, typer.Argument(help="Job folder, e.g. jobs/surgical.")]
Out = Annotated[Path, typer.Option(help="New folder for everything the run makes.")]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="[SITE:]KNOB=VALUE",
        help="Set a knob of the job, or of one site of it; may be repeated.",
    ),
]
Force = Annotated[bool, typer.Option(help="Remove --out first if it is a run's folder.")]
Own = Annotated[bool, typer.Option(help="Also train each site alone, for comparison.")]
Preset = Annotated[
    str | None,
    typer.Option(help=f"Knobs that belong together: {', '.join(presets.PRESETS)}. --set wins."),
]
Sites = Annotated[str, typer.Option(help="Names, by comma. Default: the job's.")]
SiteFiles = Annotated[
    Path | None, typer.Option(help="Folder of <site>.yaml. Default: the phantom study.")
]
InitialBody = Annotated[
    Path | None, typer.Option(help="Checkpoint to start from. Default: the phantom study's.")
]


def split(sites: str) -> tuple[str, ...]:
    """Names from a text with commas; of an empty one none."""
    return tuple(name.strip() for name in sites.split(",")) if sites else ()


def run_and_report(study: StudyRun, own: bool, title: str, force: bool) -> None:
    """Run a study, print its answer, and say where everything is."""
    check(study, own=own)  # before an earlier run is removed for this one
    make_room(study.folder, force)
    from cxr_study.reports.run.console import print_summary
    from cxr_study.reports.run.evaluate_run import report
    from cxr_study.runs.simulated_run import run

    run(study, own=own, console=console)
    finished = finished_run(study.folder)
    summary, html = report(finished, study.folder / "report", title=title, console=console)
    print_summary(summary, console)
    say(f"report   {html}")
    say(f"summary  {html.with_name('summary.json')}")
    say(f"models   {checkpoint_folder(study.workspace)}")


def make_room(folder: Path, force: bool, mark: str = MARK) -> None:
    """Remove a folder of an earlier run where that is wanted; `mark` tells it from others.

    Raises:
        RunFolderError: See `check_room`.
    """
    check_room(folder, force, mark)
    if folder.exists():
        shutil.rmtree(folder)


def check_room(folder: Path, force: bool, mark: str = MARK) -> None:
    """Refuse a folder that `make_room` could not make room in.

    Raises:
        RunFolderError: The folder exists, and is not to be removed or is no run's.
    """
    if not folder.exists():
        return
    if not force:
        raise RunFolderError(
            f"a run needs a new folder; {folder} exists. Give another --out, or --force."
        )
    if not (folder / mark).is_file():
        raise RunFolderError(
            f"only what an earlier run made is removed; {folder} holds no {mark}. Remove it "
            "yourself, or give another --out."
        )


def say(text: str, to: Console = console) -> None:
    """Print a line as it is: nothing in a path or a message is markup, or broken off."""
    to.print(text, markup=False, highlight=False, soft_wrap=True)
