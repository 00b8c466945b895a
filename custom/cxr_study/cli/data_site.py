"""From an official download or a hospital's own csv to a site file: `surgagg data site`."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer import Argument, Option

from cxr_study.cli.data import Seed, app, split_site
from cxr_study.cli.data_images import prepare_images
from cxr_study.cli.run import console, say
from cxr_study.common.spelling import nearest
from cxr_study.data.labels.label_table import classes as classes_of
from cxr_study.data.readers import DATASETS, official_files

if TYPE_CHECKING:
    import pandas as pd

    from cxr_study.data.readers.table_layout import TableLayout
    from cxr_study.data.sites.own_table import OwnTable
    from cxr_study.data.sites.site_file import SiteFile


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
    if dataset not in DATASETS:
        raise typer.BadParameter(
            f"{dataset!r} is no data set; {nearest(dataset, tuple(DATASETS))}."
        )
    listing = (findings, separator, value, unlisted)
    own = (*listing, images_by, column, word, encoding, images, blank, threshold, nested, patients)
    if dataset != "table" and any(own):
        raise typer.BadParameter(
            "--column, --word, --images, --images-by, --encoding, --blank, --findings, "
            "--separator, --value, --unlisted, --threshold, --patients and --nested are of table."
        )
    if findings is None and any(listing):
        raise typer.BadParameter("--separator, --value and --unlisted go with --findings COLUMN.")
    if site_file.suffix != ".yaml":
        raise typer.BadParameter(f"a site file is named <site>.yaml; got {site_file}.")
    if site_file.exists():
        raise typer.BadParameter(f"{site_file} exists; remove it, or give another name.")
    index = site_file.with_name(f"{site_file.stem}_images.csv") if images_by else None
    if dataset == "table":  # pydantic takes its time
        from cxr_study.data.readers.table_layout import Findings, TableLayout

        lists = None
        if findings:
            separator = separator and separator.replace(r"\n", "\n")
            lists = Findings(column=findings, separator=separator, value=value, unlisted=unlisted)
        meant = pairs(column or [], "--column", "'Bildname=image'")
        words = pairs(word or [], "--word", "ja=1")
        layout = TableLayout(meant, words, encoding, lists, threshold, patients)
        keys = described(folder, layout, images, blank, nested, index)
        if index and images_by:
            from cxr_study.data.sites.header_index import write_index

            say(f"images     {write_index(keys['images'], images_by, index)}")
    else:
        labels, metadata, pictures = official_files(dataset, folder)
        keys = {"labels": labels, "metadata": metadata, "images": pictures}
    from cxr_study.data.sites.site_data import read_labels
    from cxr_study.data.sites.site_file import read_site_file, write_site_file

    site_file.parent.mkdir(parents=True, exist_ok=True)
    split = site_file.with_name(f"{site_file.stem}_split.csv")
    keys |= {"split": split, "views": None if views == "frontal" else views}
    write_site_file(site_file, dataset=dataset, **keys)
    try:
        written = read_site_file(site_file)
        table = read_labels(written)
        _refuse_without_images(written, table)
        write_site_file(site_file, dataset=dataset, **keys, **_decided(written, table))
        written = read_site_file(site_file)
        split_site(written, Fraction(1), seed)
    except ValueError:
        for path in filter(None, (site_file, split, index)):
            path.unlink(missing_ok=True)
        raise
    say(f"site file  {site_file}")
    _say_new_classes(written)
    if dataset == "table" and prepare:
        prepare_images([site_file])
    say(f"next       surgagg data audit {site_file} --out audit")


def _decided(written: SiteFile, table: pd.DataFrame) -> dict[str, Any]:
    """Keys of what is decided where nobody says otherwise, and says so."""
    from cxr_study.data.labels.label_table import UNCERTAIN
    from cxr_study.data.labels.merges import parts_against
    from cxr_study.data.sites.site_data import labelled_classes

    labelled = labelled_classes(written, classes_of(table))
    keys: dict[str, Any] = {}
    if uncertain := int((table[list(labelled)] == UNCERTAIN).to_numpy().sum()):
        say(f"uncertain  {uncertain:,} labels, which count as negative (uncertain: zeros)")
        keys["uncertain"] = "zeros"
    if written.dataset == "padchest":
        against = parts_against(table, blank_is_negative=True)
        keys["merges"] = {name: list(against[name]) for name in labelled if name in against}
        for name, parts in keys["merges"].items():
            say(f"merged     {name}: {', '.join(parts)}")
    return keys


def _say_new_classes(written: SiteFile) -> None:
    """Say which classes the vocabulary does not know, with the nearest it knows."""
    from cxr_study.data.labels.class_overlap import class_report, print_undecided
    from cxr_study.data.sites.before_training import site_classes
    from cxr_study.data.sites.site_data import read_labels

    report = class_report([site_classes(written, read_labels(written))])
    print_undecided(report, console)
    if written.findings and report.new:
        say(
            "listed     what is no class: --word '<text>=No Finding' says that nothing is found, "
            f"--word '<text>=' leaves it out (remove {written.path} first)"
        )


def _refuse_without_images(written: SiteFile, table: pd.DataFrame) -> None:
    from cxr_study.data.sites.site_data import find_files
    from cxr_study.data.sites.site_file import SiteFileError

    if not any(find_files(written, table["image"])):
        raise SiteFileError(
            f"none of the {len(table)} images of these labels lie below {written.images}, first "
            f"{table['image'][0]}. Put the images there, or link them."
        )


def described(
    given: Path,
    layout: TableLayout,
    images: Path | None = None,
    blank: str | None = None,
    nested: bool = False,
    index: Path | None = None,
) -> dict[str, Any]:
    """Look at a csv and say what is in it.

    Args:
        given: The csv, or a folder with it.
        layout: How the csv is written, as a person says.
        images: Folder below which the images lie.
        blank: What blank labels count as.
        nested: Whether the images lie in folders that the csv does not name.
        index: Which images have which number, not read here; None: the csv has their paths.

    Returns:
        The keys of its site file, but for `split`.

    Raises:
        OwnTableError: Something is not said; names all of it.
        TableError: The csv cannot be read.
    """
    from cxr_study.data.sites.own_table import find_csv, find_images, look

    csv = find_csv(given)
    folder = images or (given if given.is_dir() else csv.parent)
    table = look(csv, layout, folder, blank, index)
    _say_found(table, layout, blank)
    if index is None:
        names = table.table["image"].tolist()
        folder, found = find_images(folder, names, nested)
        say(f"images     {found:,} of {len(names):,} below {folder}")
    return {
        "labels": csv,
        "images": folder,
        "metadata": index,
        "nested": nested or None,
        "columns": {n: kind for n, kind in table.columns.items() if n.casefold() != kind} or None,
        "words": dict(layout.words) or None,
        "encoding": layout.encoding,
        "findings": layout.findings and layout.findings.model_dump(exclude_none=True),
        "threshold": layout.threshold,
        "patients": layout.patients,
        "blank": blank,
    }


def pairs(given: Sequence[str], option: str, example: str) -> dict[str, str]:
    """Read options of the form name=value.

    Raises:
        BadParameter: One has no "=".
    """
    wrong = [text for text in given if "=" not in text]
    if wrong:
        raise typer.BadParameter(f"{option} is given as {example}; got {wrong[0]!r}.")
    return {text.rpartition("=")[0].strip(): text.rpartition("=")[2].strip() for text in given}


def _say_found(table: OwnTable, layout: TableLayout, blank: str | None) -> None:
    """Say what goes into the site file, and what does not."""
    from cxr_study.data.readers.table_layout import IGNORED

    say(f"csv        {table.csv}: {table.rows:,} rows, {table.separator} between the cells")
    used = {kind: name for name, kind in table.columns.items() if kind != IGNORED}
    used |= dict(zip(("findings", "value"), layout.listing, strict=False))
    say(f"columns    {', '.join(f'{kind}: {name}' for kind, name in used.items())}")
    if table.blank:
        say(f"blank      {table.blank:,} labels, which count as {blank}")
    for name, why in table.unused.items():
        say(f"ignored    {name}: {why}")
    if "view" not in used:
        by_path = (table.table["view"] == "frontal").all()
        say(
            f"view       {'not told: all images count as frontal' if by_path else 'of each header'}"
        )
