"""The command that compares all methods and strategies: `surgagg compare`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from cxr_study.cli.run import InitialBody, SiteFiles
from cxr_study.comparison.check import check
from cxr_study.comparison.grid import HEAD_WEIGHTINGS, ROWS, ComparisonError, Setup
from cxr_study.jobs import settings

EPILOG = "Example:  surgagg compare --out runs/compare --seeds 3"
PHANTOM_SETTINGS = {"batch_size": 16}
"""Knobs for the phantom study: more steps a round, so that few rounds go far."""

console = Console()


def compare(
    out: Annotated[
        Path, typer.Option(help="Folder for everything; a comparison that is there goes on.")
    ] = Path("runs/compare"),
    seeds: Annotated[int, typer.Option(help="How many: 0, 1, ...", min=1)] = 3,
    rounds: Annotated[int, typer.Option(help="Equal rounds.", min=1)] = 12,
    most_rounds: Annotated[int, typer.Option(help="Rounds at most, at early stopping.")] = 24,
    patience: Annotated[
        int, typer.Option(help="Rounds without a better model after which to stop.", min=1)
    ] = 4,
    head_weightings: Annotated[
        bool,
        typer.Option(
            "--head-weightings", help="Also weigh columns by the sites' samples and positives."
        ),
    ] = False,
    sites: Annotated[str, typer.Option(help="Names, by comma.")] = "nih,chexpert",
    site_files: SiteFiles = None,
    initial_body: InitialBody = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KNOB=VALUE", help="Set a knob of all; may be repeated."),
    ] = None,
    at_once: Annotated[
        int,
        typer.Option(help="Trainings side by side, one thread a site; 0: as cores allow.", min=0),
    ] = 0,
) -> None:
    """Train with every method and strategy of the papers, and test their claims.

    Federated in FLARE's simulator, each site alone, and all data in one place; all with the same
    recipe, measured after the same rounds and at early stopping. On the phantom every seed has
    patients of its own. A training that is done is kept in --out, and not done again.
    """
    given, per_site = settings.parse(set_ or [])
    if per_site:
        raise ComparisonError(f"a comparison has the same knobs everywhere; got {per_site}.")
    setup = Setup(
        sites=tuple(name.strip() for name in sites.split(",")),
        rounds=rounds,
        most_rounds=most_rounds,
        patience=patience,
        settings={**PHANTOM_SETTINGS, **given} if site_files is None else given,
    )
    check(setup, initial_body)
    from cxr_study.comparison import run, text
    from surgical_aggregation.site.training import tensorflow_setup

    found, page = run.compare(
        (*ROWS, *HEAD_WEIGHTINGS) if head_weightings else ROWS,
        seeds,
        setup,
        out,
        site_files=site_files,
        initial_body=initial_body,
        # A federated run leaves cores idle while it starts and stops: one more than they hold.
        at_once=at_once or tensorflow_setup.cores() // len(setup.sites) + 1,
        console=console,
    )
    text.print_summary(found, console)
    for file in (page, *(page.with_name(name) for name in ("table.md", "results.csv"))):
        console.print(str(file), markup=False, highlight=False, soft_wrap=True)
    if found.failures:
        raise typer.Exit(1)
