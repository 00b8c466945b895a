"""From an official download or a hospital's own csv to a site file: `surgagg data site`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer
from typer import Argument, Option

from cxr_study.cli.data import Seed, app
from cxr_study.cli.data_images import prepare_images
from cxr_study.cli.run import say
from cxr_study.data.readers import DATASETS, dataset_of, official_files


@app.command(
    epilog="Examples:  surgagg data site chexpert data/CheXpert-v1.0-small sites/stanford.yaml     "
    "A row per image, its findings as 'Mass; Edema':  surgagg data site table klinik "
    "sites/klinik.yaml --findings Befund --separator ';' --unlisted negative --blank 'not labelled'"
    "     By number: --column Nr=image --images-by AccessionNumber"
)
def site(
    dataset: Annotated[str, Argument(help=f"{', '.join(DATASETS)} (a hospital's own csv).")],
    folder: Annotated[Path, Argument(help="Of the official download; or your csv, or its folder.")],
    site_file: Annotated[Path, Argument(help="Site file to write; its name is the site's.")],
    seed: Seed = 0,
    column: Annotated[
        list[str] | None,
        Option(
            metavar="NAME=WHAT",
            help="Own csv: what a column is: image, patient, view, sex, age, ignored.",
        ),
    ] = None,
    word: Annotated[
        list[str] | None,
        Option(
            metavar="WORD=MEANING",
            help="Own csv: what a word stands for, e.g. ja=1; in one column: Geschlecht:1=F.",
        ),
    ] = None,
    images: Annotated[Path | None, Option(help="Own csv: folder of its images.")] = None,
    nested: Annotated[bool, Option("--nested", help="Own csv: find images at any depth.")] = False,
    images_by: Annotated[
        str | None, Option(help="Own csv: the DICOM keyword of its images, e.g. AccessionNumber.")
    ] = None,
    encoding: Annotated[str | None, Option(help="Own csv: if not Unicode, e.g. cp1252.")] = None,
    blank: Annotated[
        Literal["negative", "not labelled"] | None,
        Option(help="Own csv: what blank labels count as."),
    ] = None,
    findings: Annotated[
        str | None,
        Option(metavar="COLUMN", help="Own csv: the column that names findings, in lists or rows."),
    ] = None,
    separator: Annotated[
        str | None,
        Option(help=r"Of the findings in a cell: '|', '\n', ...; 'list' for Python's ['a', 'b']."),
    ] = None,
    value: Annotated[
        str | None,
        Option(metavar="COLUMN", help="The column with the label of a finding: 1, 0, -1 or blank."),
    ] = None,
    unlisted: Annotated[
        Literal["negative"] | None,
        Option(help="'negative': a finding that an image does not list is absent, not blank."),
    ] = None,
    threshold: Annotated[
        float | None,
        Option(min=0, max=1, help="Own csv: probability from which on a label is positive."),
    ] = None,
    patients: Annotated[
        Literal["exact", "each-image"] | None,
        Option(help="Own csv: '007' and '7' are two patients; or no column names patients."),
    ] = None,
    views: Annotated[
        Literal["frontal", "all"], Option(help="'all': use lateral and other views, too.")
    ] = "frontal",
    prepare: Annotated[
        bool, Option(help="Decode the images of an own csv at once, at 64 pixels.")
    ] = True,
) -> None:
    """Write a site file for a data set or an own csv, and split its patients 70/10/20.

    Of an own csv (table) a header image, patient, view, sex or age says what a column is, and
    columns of 1, 0, -1 and blanks are classes; options say the rest, and what is missing is named.
    Its images are decoded, too. custom/SITES.md says what else can be in a site file.
    """
    dataset_of(dataset)  # which refuses one that is not known
    lists = {"column": findings, "separator": separator and separator.replace(r"\n", "\n"),
             "value": value, "unlisted": unlisted}  # fmt: skip
    lists = {key: given for key, given in lists.items() if given is not None}
    said = {
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
    if dataset != "table" and any((*said.values(), images_by)):
        raise typer.BadParameter(
            "--column, --word, --images, --images-by, --encoding, --blank, --findings, "
            "--separator, --value, --unlisted, --threshold, --patients and --nested are of table."
        )
    if findings is None and lists:
        raise typer.BadParameter("--separator, --value and --unlisted go with --findings COLUMN.")
    if site_file.suffix != ".yaml":
        raise typer.BadParameter(f"a site file is named <site>.yaml; got {site_file}.")
    if site_file.exists():
        raise typer.BadParameter(f"{site_file} exists; remove it, or give another name.")
    if dataset != "table":
        official_files(dataset, folder)  # refused before all else is imported
    from cxr_study.data.sites.new_site import make_site

    said["views"] = None if views == "frontal" else views
    make_site(dataset, folder, site_file, said, images_by=images_by, seed=seed, say=say)
    if dataset == "table" and prepare:
        prepare_images([site_file])
    say(f"next       surgagg data audit {site_file} --out audit")


def pairs(given: Sequence[str], option: str, example: str) -> dict[str, str]:
    """Read options of the form name=value.

    Raises:
        BadParameter: One has no "=".
    """
    wrong = [text for text in given if "=" not in text]
    if wrong:
        raise typer.BadParameter(f"{option} is given as {example}; got {wrong[0]!r}.")
    return {text.rpartition("=")[0].strip(): text.rpartition("=")[2].strip() for text in given}
