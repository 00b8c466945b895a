"""The commands about sites and their labels: `surgagg data`; those about images: `data_images`."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from cxr_study.cli.run import console, say

if TYPE_CHECKING:
    from cxr_study.data.sites.site_file import SiteFile

app = typer.Typer(
    no_args_is_help=True,
    help="From the official files of a data set to sites that are ready to train.",
    epilog="Example:  surgagg data site nih data/nih sites/nih.yaml      Exit codes: 0 done, "
    "1 more bad images or unresolved names than allowed, 2 wrong use.",
)
RATIOS = "70/10/20"
CURE = (
    "Where a split has no positive patient of a class, it is not trained or not measured there: "
    "other ratios (surgagg data split <site file> --ratios 60/20/20) or another seed may help."
)
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
    from cxr_study.data.sites.site_file import read_site_file

    split_site(read_site_file(site_file), part, seed, ratios, nih_lists, mimic_split)


@app.command(epilog="Example:  surgagg data classes sites/*.yaml")
def classes(site_files: SiteFiles) -> None:
    """Show the union of the sites' classes, who labels what, and names that look alike.

    Exit code 1 if names look alike and nobody has decided whether they are the same.
    """
    if len({path.stem for path in site_files}) < len(site_files):
        raise typer.BadParameter("sites need different names; two site files have the same.")
    from cxr_study.data.labels.class_overlap import class_report, print_report
    from cxr_study.data.sites.before_training import site_classes
    from cxr_study.data.sites.site_data import read_labels
    from cxr_study.data.sites.site_file import read_site_file

    files = map(read_site_file, site_files)
    report = class_report([site_classes(file, read_labels(file)) for file in files])
    print_report(report, console)
    if report.near_duplicates:
        raise typer.Exit(1)


def split_site(
    written: SiteFile,
    share: Fraction,
    seed: int,
    ratios: str = RATIOS,
    nih_lists: tuple[Path, Path] | None = None,
    mimic_split: Path | None = None,
) -> None:
    """Split the patients of a site, and say how many are where; options as in `split_patients`."""
    from cxr_study.data.labels import uncertain_labels
    from cxr_study.data.labels.label_table import classes as classes_of
    from cxr_study.data.labels.label_table import one_sided
    from cxr_study.data.readers import mimic, nih
    from cxr_study.data.sites import patient_split
    from cxr_study.data.sites.site_data import labelled_classes, read_labels, select_views
    from cxr_study.data.sites.split_file import counts, earlier, write_split

    table = select_views(written, read_labels(written))
    if nih_lists is not None:
        parts = nih.official_lists(*nih_lists).set_index("image")["part"]
        assignment = patient_split.split_by_lists(table, parts, seed=seed)
        scheme = "NIH's official lists; 1/8 of train_val's patients validate"
    elif mimic_split is not None:
        assignment = mimic.official_split(mimic_split)
        scheme = "MIMIC's official split"
    else:
        assignment = patient_split.split_patients(table, seed=seed, fractions=_ratios(ratios))
        scheme = f"{ratios} {patient_split.SCHEME}"
    if share < 1:
        assignment = patient_split.thin(assignment, table, float(share), seed=seed)
        scheme += f"; {share} of the training patients used"
    write_split(assignment, table, written.split, scheme=scheme, seed=seed)
    for name, part in counts(assignment, table).items():
        images = f"{part['images']:,} images ({part['images'] / len(table):.0%})"
        say(f"{name:10}  {part['patients']:,} patients, {images}")
    say(f"split      {written.split}")
    if kept := earlier(written.split):
        say(f"earlier    {kept[-1]}")
    for note in table.attrs["notes"]:
        say(f"note       {note}")
    labelled = labelled_classes(written, classes_of(table))
    rows = table["patient"].map(assignment.set_index("patient")["split"]) == "train"
    policy = replace(written.policy, blank=written.policy.blank or "not labelled")
    trained = uncertain_labels.apply(table.loc[rows, ["image", *labelled]], policy)
    for name in labelled:
        positive, negative = (trained[name] > 0.5).sum(), (trained[name] < 0.5).sum()
        say(f"training   {name}: {positive:,} positive, {negative:,} negative")
    for line in one_sided(trained):
        say(f"  {line}")
    missing = patient_split.without_positives(assignment, table, labelled)
    for line in patient_split.describe_missing(missing):
        say(f"  {line}")
    if any(each.patients >= len(patient_split.SPLITS) for each in missing):
        say(f"  {CURE}")


def _ratios(text: str) -> tuple[float, ...]:
    try:
        numbers = [float(number) for number in text.split("/")]
    except ValueError:
        numbers = []
    if len(numbers) != 3 or min(numbers) <= 0:
        raise typer.BadParameter(
            f"--ratios needs three numbers above 0, such as {RATIOS}; got {text!r}."
        )
    return tuple(number / sum(numbers) for number in numbers)


def fraction(text: str) -> Fraction:
    """A share, above 0 and at most 1, from a command line."""
    try:
        value = Fraction(text)
    except (ValueError, ZeroDivisionError):
        value = Fraction(0)
    if not 0 < value <= 1:
        raise typer.BadParameter(f"a share is above 0, at most 1, such as 1/8; got {text!r}.")
    return value
