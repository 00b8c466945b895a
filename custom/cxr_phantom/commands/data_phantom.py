"""The command that draws the phantom: `surgagg data phantom`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from typer import Option

from cxr_study.cli.common import say, split
from cxr_study.cli.data import Seed, Size
from cxr_study.cli.options import command

app = typer.Typer()


@command(app)
def phantom(
    folder: Path,
    sites: str = "nih,chexpert",
    images: Annotated[int, Option(min=1)] = 2000,
    size: Size = 64,
    seed: Seed = 0,
    rare_at_least: float = 0.1,
) -> None:
    """Draw chest radiographs in the layouts of NIH ChestX-ray14, CheXpert and MIMIC with CXR-LT.

    Options:
        folder: New folder.
        sites: Of nih, chexpert and mimic, by comma.
        images: Frontal images of each site.
        rare_at_least: Least share of images with a finding; 0: as in the real data.

    Example:
        surgagg data phantom data/phantom --sites nih,mimic
    """
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
