"""The command that draws the phantom: `surgagg data phantom`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from cxr_study.cli.data import Seed, Size
from cxr_study.cli.run import say, split

app = typer.Typer()


@app.command(epilog="Example:  surgagg data phantom data/phantom --sites nih,mimic")
def phantom(
    folder: Annotated[Path, Argument(help="New folder.")],
    sites: Annotated[str, Option(help="Of nih, chexpert and mimic, by comma.")] = ("nih,chexpert"),
    images: Annotated[int, Option(help="Frontal images of each site.", min=1)] = 2000,
    size: Size = 64,
    seed: Seed = 0,
    rare_at_least: Annotated[
        float, Option(help="Least share of images with a finding; 0: as in the real data.")
    ] = 0.1,
) -> None:
    """Draw chest radiographs in the layouts of NIH ChestX-ray14, CheXpert and MIMIC with CXR-LT."""
    from cxr_phantom.writers.write_phantom import write_phantom
    from cxr_study.common import progress

    with progress.bar("drawing") as report:
        write_phantom(
            folder,
            sites=split(sites),
            images_per_site=images,
            size=size,
            seed=seed,
            rare_at_least=rare_at_least,
            progress=report,
        )
    for site_file in sorted((folder / "sites").glob("*.yaml")):
        say(f"site file  {site_file}")
