"""The commands about sites and their labels: `surgagg data`; those about images: `data_images`."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from cxr_study.cli.run import console, say

app = typer.Typer(
    no_args_is_help=True,
    help="From the official files of a data set to sites that are ready to train.",
    epilog="Example:  surgagg data site nih data/nih sites/nih.yaml      Exit codes: 0 done, "
    "1 more bad images or unresolved names than allowed, 2 wrong use.",
)
RATIOS = "70/10/20"
SiteFiles = Annotated[list[Path], Argument(help="Site files, e.g. sites/*.yaml.")]
Size = Annotated[int, Option(help="Side of the images, pixels.", min=8)]
Seed = Annotated[int, Option(help="Another seed, another result.", min=0)]
Share = Annotated[
    str, Option(help="Of the training patients to use, e.g. 1/8; the others stay unused.")
]


@app.command("split", epilog="Example:  surgagg data split sites/nih.yaml --seed 1 --share 1/8")
def split_patients(
    site_file: Annotated[Path, Argument(help="Its key 'split' says where to write.")],
    seed: Seed = 0,
    share: Share = "1",
    nih_lists: Annotated[
        tuple[Path, Path] | None,
        Option(metavar="TRAIN_VAL TEST", help="NIH's train_val_list.txt and test_list.txt."),
    ] = None,
    mimic_split: Annotated[
        Path | None, Option(help="MIMIC's mimic-cxr-2.0.0-split.csv.gz.")
    ] = None,
    ratios: Annotated[
        str, Option(metavar="A/B/C", help="Of patients in train, validation and test.")
    ] = RATIOS,
) -> None:
    """Put every patient of a site in train, validation or test: 70/10/20, or as officially split.

    The split is stratified by class; a class that is in no patient of a split is named. An earlier
    split is replaced.
    """
    lists = [given for given in (nih_lists, mimic_split) if given is not None]
    if len(lists) + (ratios != RATIOS) > 1:
        raise typer.BadParameter("--nih-lists, --mimic-split and --ratios exclude each other.")
    part = fraction(share)
    _check_ratios(ratios)
    from cxr_study.data.sites.site_file import read_site_file

    site = read_site_file(site_file)  # refused before all else is imported
    from cxr_study.data.sites.new_site import split_site

    split_site(site, part, seed, ratios, nih_lists, mimic_split, say=say)


@app.command(epilog="Example:  surgagg data classes sites/*.yaml")
def classes(site_files: SiteFiles) -> None:
    """Show the union of the sites' classes, who labels what, and names that look alike.

    Exit code 1 if names look alike and nobody has decided whether they are the same.
    """
    if len({path.stem for path in site_files}) < len(site_files):
        raise typer.BadParameter("sites need different names; two site files have the same.")
    from cxr_study.data.labels.class_overlap import near_duplicates, print_report
    from cxr_study.data.sites.site_data import read_labels, site_classes
    from cxr_study.data.sites.site_file import read_site_file

    files = map(read_site_file, site_files)
    sites = [site_classes(file, read_labels(file)) for file in files]
    print_report(sites, console)
    if any(near_duplicates(sites)):
        raise typer.Exit(1)


def _check_ratios(text: str) -> None:
    try:
        numbers = [float(number) for number in text.split("/")]
    except ValueError:
        numbers = []
    if len(numbers) != 3 or min(numbers) <= 0:
        raise typer.BadParameter(
            f"--ratios needs three numbers above 0, such as {RATIOS}; got {text!r}."
        )


def fraction(text: str) -> Fraction:
    """A share, above 0 and at most 1, from a command line."""
    try:
        value = Fraction(text)
    except (ValueError, ZeroDivisionError):
        value = Fraction(0)
    if not 0 < value <= 1:
        raise typer.BadParameter(f"a share is above 0, at most 1, such as 1/8; got {text!r}.")
    return value
