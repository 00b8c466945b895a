"""The command that cuts a data set into sites: `surgagg data partition`."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from cxr_study.cli.data import Seed, Share, fraction
from cxr_study.cli.run import console, say

if TYPE_CHECKING:
    from cxr_study.data.sites.site_file import SiteFile

app = typer.Typer()


@app.command(
    epilog="Example:  surgagg data partition sites/nih.yaml --out sites4 --number 4 --shared 2"
)
def partition(
    pool: Annotated[
        Path,
        Argument(help="Site file of the whole data set, or folder of NIH's csv and any images."),
    ],
    out: Annotated[Path, Option(help="New folder for the sites.")],
    number: Annotated[int, Option(help="Of sites.", min=1)] = 2,
    sets: Annotated[
        str, Option(help="published, drawn (from the seed), or a YAML file of class sets.")
    ] = "published",
    shared: Annotated[
        int | None, Option(help="Number of classes that every site labels.", min=0)
    ] = None,
    share: Share = "1",
    seed: Seed = 0,
) -> None:
    """Cut one data set into sites with different patients and different classes.

    Sites have equally many patients, positive and negative ones alike, each split 70/10/20. Of a
    folder the rows with an image are used.
    """
    if out.exists():
        raise typer.BadParameter(f"--out needs a new folder; {out} exists.")
    part = fraction(share)
    from rich.table import Table

    from cxr_studies.partition.partition import write_sites
    from cxr_study.data.sites.patient_split import CURE, SPLITS, read_split

    try:
        whole = _whole(pool, out)
        labelled = _class_sets(whole, number, sets, shared, seed)
        cut = write_sites(whole, out, labelled, seed=seed, share=float(part))
    except ValueError:
        shutil.rmtree(out, ignore_errors=True)
        raise
    table = Table(title="Sites")
    for column in ("site", "patients", "train", "validation", "test", "images", "classes"):
        table.add_column(column, justify="left" if column in ("site", "classes") else "right")
    made = read_split(out / "split.csv").header["counts"]
    for path, names in zip(cut, labelled, strict=True):
        parts = made[path.stem]
        table.add_row(
            path.stem,
            f"{sum(part['patients'] for part in parts.values()):,}",
            *(f"{parts[name]['images']:,}" for name in SPLITS),
            f"{sum(part['images'] for part in parts.values()):,}",
            ", ".join(names),
        )
    console.print(table)
    for path, missing in cut.items():
        for line in missing:
            say(f"  {path.stem}: {line}" if line != CURE else f"  {CURE}")
    say(f"site files  {out}")


def _whole(pool: Path, out: Path) -> SiteFile:
    """The data set to cut; one for NIH's folder is written into `out`."""
    from cxr_studies.partition.partition import write_nih_pool
    from cxr_study.data.sites.site_file import read_site_file

    return read_site_file(write_nih_pool(pool, out / "whole") if pool.is_dir() else pool)


def _class_sets(
    whole: SiteFile, number: int, sets: str, shared: int | None, seed: int
) -> tuple[tuple[str, ...], ...]:
    """The classes of each site."""
    from cxr_studies.partition import class_sets
    from cxr_study.data.labels.label_table import classes as class_columns
    from cxr_study.data.sites.site_data import read_labels

    if sets == "published":
        return class_sets.published(number, shared)
    if sets == "drawn":
        known = whole.classes or class_columns(read_labels(whole))
        return class_sets.draw(known, number, shared=shared or 0, seed=seed)
    return class_sets.read_class_sets(Path(sets), number, shared)
