"""The commands `surgagg data`: site files, splits, classes and images."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console
from typer import Argument, Option

from cxr_study.cli.common import console, say
from cxr_study.cli.options import command
from cxr_study.data.readers import DATASETS, dataset_of, official_files

app = typer.Typer(
    no_args_is_help=True,
    help="Prepare sites for training: site file, split, classes, images.",
    epilog="Example:  surgagg data site nih data/nih sites/nih.yaml      Exit codes: 0 done, "
    "1 more bad images than allowed or similar class names to resolve, 2 wrong use.",
)
RATIOS = "70/10/20"
MOST_NOTED = 20
SiteFiles = Annotated[list[Path], Argument(help="Site files, e.g. sites/*.yaml.")]
Size = Annotated[int, Option(help="Side of the images, pixels.", min=8)]
Seed = Annotated[int, Option(help="Random seed of the split.", min=0)]
Share = Annotated[
    str, Option(help="Share of the training patients to use, e.g. 1/8; the others stay unused.")
]


@command(app, "split")
def split_patients(
    site_file: Path,
    seed: Seed = 0,
    share: Share = "1",
    nih_lists: Annotated[tuple[Path, Path] | None, Option(metavar="TRAIN_VAL TEST")] = None,
    mimic_split: Path | None = None,
    ratios: Annotated[str, Option(metavar="A/B/C")] = RATIOS,
) -> None:
    """Split the patients of a site into train, validation and test: 70/10/20 or the official split.

    The split is stratified by class. Classes without a positive patient in a split are reported. An
    earlier split file is kept under another name.

    Options:
        site_file: Site file; its key 'split' names the file to write.
        nih_lists: NIH's train_val_list.txt and test_list.txt.
        mimic_split: MIMIC's mimic-cxr-2.0.0-split.csv.gz.
        ratios: Patients in train, validation and test.

    Example:
        surgagg data split sites/nih.yaml --seed 1 --share 1/8
    """
    lists = [given for given in (nih_lists, mimic_split) if given is not None]
    if len(lists) + (ratios != RATIOS) > 1:
        raise typer.BadParameter("--nih-lists, --mimic-split and --ratios exclude each other.")
    part = fraction(share)
    _check_ratios(ratios)
    from cxr_study.data.sites.site_file import read_site_file

    site = read_site_file(site_file)  # errors come before slow imports
    from cxr_study.data.sites.new_site import split_site

    split_site(site, part, seed, ratios, nih_lists, mimic_split, say=say)


@command(app)
def classes(site_files: SiteFiles) -> None:
    """Show the union of the sites' classes, which site labels which, and similar names.

    Exit code 1 if it is undecided whether similar names are the same class.

    Example:
        surgagg data classes sites/*.yaml
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


@command(app, "prepare")
def prepare_images(site_files: SiteFiles, size: Size = 64) -> None:
    """Decode all images of sites once and cache them for training.

    Images that are missing, unreadable, constant or duplicates are listed and left out. Exit code 1
    if there are more of them than 'bad_images' in the site file allows.

    Example:
        surgagg data prepare sites/*.yaml --size 224
    """
    from cxr_study.common import progress
    from cxr_study.data.images import image_store
    from cxr_study.data.images.image_files import ImageError
    from cxr_study.data.sites.site_data import check_disjoint, load_labels, prepare
    from cxr_study.data.sites.site_file import read_site_file

    loaded = [load_labels(read_site_file(path)) for path in site_files]
    for note in check_disjoint(loaded):
        say(f"note: {note}")
    failed = False
    for labels in loaded:
        site, name = labels.site, labels.site.site
        with progress.bar(f"{name}: decoding images") as report:
            _, prepared = prepare(labels, size, report)
        index, usable = prepared.index, prepared.index["status"] == "ok"
        say(
            f"{name}: {usable.sum():,} of {len(index):,} images usable, {prepared.decoded:,} "
            f"decoded now; {prepared.folder}"
        )
        if prepared.bits and not site.bits:
            fixed = f"'bits: {prepared.bits}' in the site file fixes this"
            say(f"{name}: 16-bit images are assumed to have {prepared.bits} bits; {fixed}")
        try:
            image_store.check_limit(prepared, site.bad_images, f"{site.path}: key 'bad_images'")
        except ImageError as error:
            say(f"surgagg: {error}", Console(stderr=True))
            failed = True
        else:
            for row in index[~usable].itertuples():
                say(f"  left out: {row.image} {row.status} {row.detail}".rstrip())
        noted = [f"  {row.image}: {row.notes}" for row in index[usable].itertuples() if row.notes]
        if noted:
            say(f"{name}: {len(noted):,} images are used although they may not fit:")
            more = [f"  and {len(noted) - MOST_NOTED:,} more"] * (len(noted) > MOST_NOTED)
            for line in [*noted[:MOST_NOTED], *more]:
                say(line)
            say("  'contradictions: refuse' in the site file leaves them out")
    if failed:
        raise typer.Exit(1)


@command(app)
def site(
    dataset: Annotated[str, Argument(help=f"{', '.join(DATASETS)} (a hospital's own csv).")],
    folder: Path,
    site_file: Path,
    seed: Seed = 0,
    column: Annotated[list[str] | None, Option(metavar="NAME=WHAT")] = None,
    word: Annotated[list[str] | None, Option(metavar="WORD=MEANING")] = None,
    images: Path | None = None,
    nested: Annotated[bool, Option("--nested")] = False,
    images_by: str | None = None,
    encoding: str | None = None,
    blank: Literal["negative", "not labelled"] | None = None,
    findings: Annotated[str | None, Option(metavar="COLUMN")] = None,
    separator: str | None = None,
    value: Annotated[str | None, Option(metavar="COLUMN")] = None,
    unlisted: Literal["negative"] | None = None,
    threshold: Annotated[float | None, Option(min=0, max=1)] = None,
    patients: Literal["exact", "each-image"] | None = None,
    views: Literal["frontal", "all"] = "frontal",
    prepare: bool = True,
) -> None:
    r"""Write a site file for a data set or your own csv, and split its patients 70/10/20.

    In your own csv (table), columns called image, patient, view, sex and age are recognized, and
    columns of 1, 0, -1 and blanks are classes. Options describe the others; the command lists what
    is missing. Its images are decoded as well. All keys of a site file: docs/how-to/own-data.md.

    Options:
        folder: Folder of the official download; or your csv, or its folder.
        site_file: Site file to write; its name is the site's.
        column: Own csv: role of a column: image, patient, view, sex, age, ignored.
        word: Own csv: meaning of a word, e.g. ja=1; in one column: Geschlecht:1=F.
        images: Own csv: folder of its images.
        nested: Own csv: find images at any depth.
        images_by: Own csv: DICOM keyword of the number that names images, e.g. AccessionNumber.
        encoding: Own csv: if not Unicode, e.g. cp1252.
        blank: Own csv: meaning of blank labels.
        findings: Own csv: column that names findings, in lists or rows.
        separator: Separator of the findings in a cell: '|', '\n', ...; 'list' for ['a', 'b'].
        value: Column with the label of a finding: 1, 0, -1 or blank.
        unlisted: 'negative': a finding that an image does not list is absent, not blank.
        threshold: Own csv: smallest probability that counts as positive.
        patients: Own csv: '007' and '7' are two patients; or no column names patients.
        views: 'all': use lateral and other views, too.
        prepare: Decode the images of your csv now, at 64 pixels.

    Example:
        surgagg data site chexpert data/CheXpert-v1.0-small sites/stanford.yaml
        A row per image, its findings as 'Mass; Edema': surgagg data site table klinik
            sites/klinik.yaml --findings Befund --separator ';' --unlisted negative --blank
            'not labelled'
        By number: --column Nr=image --images-by AccessionNumber
    """
    dataset_of(dataset)  # raises for unknown names
    lists = {"column": findings, "separator": separator and separator.replace(r"\n", "\n"),
             "value": value, "unlisted": unlisted}  # fmt: skip
    lists = {key: text for key, text in lists.items() if text is not None}
    given = {
        "images": images,
        "nested": nested or None,
        "columns": pairs(column or [], "--column", "'Bildname=image'") or None,
        "words": pairs(word or [], "--word", "ja=1") or None,
        "encoding": encoding,
        "findings": lists or None,
        "threshold": threshold,
        "patients": patients,
        "blank": blank,
    }
    if dataset != "table" and any((*given.values(), images_by)):
        raise typer.BadParameter(
            "--column, --word, --images, --images-by, --encoding, --blank, --findings, "
            "--separator, --value, --unlisted, --threshold, --patients and --nested are for table."
        )
    if findings is None and lists:
        raise typer.BadParameter("--separator, --value and --unlisted need --findings COLUMN.")
    if site_file.suffix != ".yaml":
        raise typer.BadParameter(f"a site file is named <site>.yaml; got {site_file}.")
    if site_file.exists():
        raise typer.BadParameter(f"{site_file} exists; remove it, or give another name.")
    if dataset != "table":
        official_files(dataset, folder)  # errors come before slow imports
    from cxr_study.data.sites.new_site import make_site

    given["views"] = None if views == "frontal" else views
    make_site(dataset, folder, site_file, given, images_by=images_by, seed=seed, say=say)
    if dataset == "table" and prepare:
        prepare_images([site_file])
    say(f"next       surgagg data audit {site_file} --out audit")


def pairs(given: Sequence[str], option: str, example: str) -> dict[str, str]:
    """Parse values of a repeatable option of the form name=value; the last "=" separates.

    Args:
        given: The values.
        option: Name of the option, for the message.
        example: A value, for the message.

    Raises:
        BadParameter: A value has no "=".
    """
    wrong = [text for text in given if "=" not in text]
    if wrong:
        raise typer.BadParameter(f"{option} needs the form {example}; got {wrong[0]!r}.")
    return {text.rpartition("=")[0].strip(): text.rpartition("=")[2].strip() for text in given}


def _check_ratios(text: str) -> None:
    try:
        numbers = [float(number) for number in text.split("/")]
    except ValueError:
        numbers = []
    if len(numbers) != 3 or min(numbers) <= 0 or not math.isfinite(sum(numbers)):
        raise typer.BadParameter(
            f"--ratios needs three numbers above 0, such as {RATIOS}; got {text!r}."
        )


def fraction(text: str) -> Fraction:
    """Parse a share such as "1/8" or "0.125".

    Raises:
        BadParameter: It is not a number above 0 and at most 1.
    """
    try:
        value = Fraction(text)
    except (ValueError, ZeroDivisionError):
        value = Fraction(0)
    if not (0 < value <= 1 and float(value)):  # a float of 0 is no share either
        raise typer.BadParameter(f"a share is above 0, at most 1, such as 1/8; got {text!r}.")
    return value
