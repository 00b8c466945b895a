"""The commands that rerun the papers' studies, and others: `surgagg study`."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from typer import Argument, Option

from cxr_deployment.commands.systems import PROJECT
from cxr_studies.plan.shipped_files import names
from cxr_study.cli import options
from cxr_study.cli.common import check_data, say, split
from cxr_study.cli.options import command

app = typer.Typer(
    name="study",
    no_args_is_help=True,
    help="Rerun the papers' studies, or run your own.",
    epilog="Example:  surgagg study run clients shared-classes --phantom --quick",
)
console = Console()


@command(app)
def run(
    studies: Annotated[
        list[str], Argument(help=f"Study files, or names: {', '.join(names('study_files'))}.")
    ],
    data: str = "",
    phantom: options.Phantom = False,
    out: Path = Path("runs/studies"),
    quick: Annotated[bool, Option("--quick")] = False,
    scenarios: str = "",
    methods: str = "",
    seeds: Annotated[int | None, Option(min=1)] = None,
    at_once: Annotated[int, Option(min=0)] = 0,
    poc: Annotated[bool, Option("--poc")] = False,
    project: Path = PROJECT,
) -> None:
    """Run studies, several runs at a time, and write their reports.

    Federated runs in FLARE's simulator, or one after the other in a POC. A failed run does not stop
    the others; the same command resumes an interrupted one.

    Options:
        data: Data file: which data, and which recipe.
        phantom: Drawn images, in place of --data.
        out: Folder for all runs; finished ones are reused.
        quick: The scenarios of the quick form, one seed; --scenarios and --seeds win.
        scenarios: Some scenarios, by comma. Default: all.
        methods: Some methods, by comma. Default: all.
        seeds: How many: 0, 1, ... Default: the study's.
        at_once: Most runs at a time, e.g. 1 on one GPU; 0: as cores and memory allow.
        poc: Federated runs with real services, TLS and an admin session.
        project: FLARE's project file for --poc, which has the sites.

    Example:
        surgagg study run clients shared-classes --phantom --quick
    """
    check_data(data, phantom, "a study needs --data <data file>")
    from cxr_studies.plan.data_file import read_data
    from cxr_studies.plan.study_file import Selection, path_of, read_study, trainings

    selection = Selection(
        scenarios=split(scenarios) or None,
        methods=split(methods) or None,
        seeds=seeds or (1 if quick else None),
        quick=quick and not scenarios,
    )
    found = read_data(data or "phantom")
    read = [read_study(study).with_sites_of(found) for study in studies]
    for study in read:
        trainings(study, selection)  # refuses a misspelt scenario before the slow imports
    import pandas as pd

    from cxr_studies.analysis import analysis
    from cxr_studies.analysis.study_results import gather
    from cxr_studies.report.study_report import write as report
    from cxr_studies.runner.run_study import run_studies
    from cxr_study.common.files import atomic_write

    origins = {}  # file in a report's folder -> study file, data file and selection, in words
    for study, given in zip(read, studies, strict=True):
        origin = f"study {path_of(given)}, data {found.path}, {selection}\n"
        path = out / study.name / "origin.txt"
        origins[path] = origin
        if path.is_file() and (other := path.read_text(encoding="utf-8")) != origin:
            say(f"{path.parent} has a report of {other.strip()}; this one will replace it.")
    made = run_studies(
        read,
        found,
        out,
        selection,
        at_once=at_once or None,
        console=console,
        project=project if poc else None,
    )
    for study, (path, origin) in zip(read, origins.items(), strict=True):
        results = gather(study, made.runs[study.name], out)
        if results is not None:
            analysis.show(study.title, study.factor, results.seeds, console)
            analysis.show_claims(results, console)
            command = shlex.join(["surgagg", *sys.argv[1:]])
            page = report(results, found, path.parent, made.data_use, command)
            if found.folds:
                folds = pd.read_csv(page.parent / "folds.csv")
                analysis.show_folds(study.title, folds, console)
            say(f"report  {page}")
            atomic_write(path, origin)
    for failure in made.failures:
        say(f"failed: {failure.run.name}: {failure.reason} The log is {failure.log}")
    if made.failures:
        raise typer.Exit(1)


@command(app, "list")
def list_() -> None:
    """List the studies that come with the package, and the folder of their files, to copy.

    Example:
        surgagg study list
    """
    from rich.table import Table

    from cxr_studies.plan.study_file import path_of, read_study

    shipped = names("study_files")
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("name", no_wrap=True, min_width=max(map(len, shipped)))
    for heading in ("title", "scenarios", "source"):
        table.add_column(heading)
    for study in map(read_study, shipped):
        scenarios = ", ".join(scenario.name for scenario in study.scenarios)
        table.add_row(study.name, study.title, scenarios, study.source)
    console.print(table)
    say(f"files  {path_of(shipped[0]).parent}")
