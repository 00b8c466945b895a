"""From an official download or a hospital's own csv to a site file: `surgagg data site`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer import Argument, Option

from cxr_study.cli.data import Seed, app, split_site
from cxr_study.cli.data_images import prepare_images
from cxr_study.cli.run import console, say
from cxr_study.common.spelling import nearest
from cxr_study.data.readers import DATASETS, official_files

if TYPE_CHECKING:
    from cxr_study.data.readers.table_layout import TableLayout
    from cxr_study.data.sites.own_table import OwnTable
    from cxr_study.data.sites.site_file import SiteFile

BLANKS = ("negative", "not labelled")


@dataclass(frozen=True)
class TableOptions:
    """What a person says of a csv; each is asked for where it is needed and a terminal is there.

    Attributes:
        layout: How the csv is written.
        images: Folder below which the images lie.
        blank: What blank labels count as, one of `BLANKS`.
        nested: Whether the images lie in folders that the csv does not name.
    """

    layout: TableLayout
    images: Path | None = None
    blank: str | None = None
    nested: bool = False


@app.command(
    epilog="Examples:  surgagg data site chexpert data/CheXpert-v1.0-small sites/stanford.yaml     "
    "A row per image, its findings as 'Mass; Edema':  surgagg data site table klinik "
    "sites/klinik.yaml --findings Befund --separator ';' --unlisted negative --blank 'not labelled'"
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
        Option(metavar="WORD=MEANING", help="Own csv: what a word stands for, e.g. ja=1."),
    ] = None,
    images: Annotated[Path | None, Option(help="Own csv: folder of its images.")] = None,
    nested: Annotated[bool, Option("--nested", help="Own csv: find images at any depth.")] = False,
    encoding: Annotated[str | None, Option(help="Own csv: if not Unicode, e.g. cp1252.")] = None,
    blank: Annotated[
        str | None, Option(help="Own csv: blank labels count as 'negative' or 'not labelled'.")
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
    prepare: Annotated[
        bool, Option(help="Decode the images of an own csv at once, at 64 pixels.")
    ] = True,
) -> None:
    """Write a site file for a data set or an own csv, and split its patients 70/10/20.

    What an own csv (table) does not tell by itself is asked for, or given as options. Its images
    are decoded, too. custom/SITES.md says what else can be in a site file.
    """
    if dataset not in DATASETS:
        raise typer.BadParameter(
            f"{dataset!r} is no data set; {nearest(dataset, tuple(DATASETS))}."
        )
    listing = (findings, separator, value, unlisted)
    own = (column, word, encoding, images, blank, threshold, nested, *listing)
    if dataset != "table" and any(own):
        raise typer.BadParameter(
            "--column, --word, --images, --encoding, --blank, --findings, --separator, --value, "
            "--unlisted, --threshold and --nested are of table."
        )
    if findings is None and any(listing):
        raise typer.BadParameter("--separator, --value and --unlisted go with --findings COLUMN.")
    if blank not in (None, *BLANKS):
        raise typer.BadParameter(f"--blank is {' or '.join(map(repr, BLANKS))}; got {blank!r}.")
    if site_file.suffix != ".yaml":
        raise typer.BadParameter(f"a site file is named <site>.yaml; got {site_file}.")
    if site_file.exists():
        raise typer.BadParameter(f"{site_file} exists; remove it, or give another name.")
    if dataset == "table":  # pydantic takes its time
        from cxr_study.data.readers.table_layout import Findings, TableLayout

        lists = None
        if findings:
            separator = separator and separator.replace(r"\n", "\n")
            lists = Findings(column=findings, separator=separator, value=value, unlisted=unlisted)
        meant = pairs(column or [], "--column", "'Bildname=image'")
        words = pairs(word or [], "--word", "ja=1")
        layout = TableLayout(meant, words, encoding, lists, threshold)
        keys = described(folder, TableOptions(layout, images, blank, nested))
    else:
        keys = official(dataset, folder)
    from cxr_study.data.sites.site_file import read_site_file, write_site_file

    site_file.parent.mkdir(parents=True, exist_ok=True)
    split = site_file.with_name(f"{site_file.stem}_split.csv")
    write_site_file(site_file, dataset=dataset, split=split, **keys)
    try:
        written = read_site_file(site_file)
        _refuse_without_images(written)
        split_site(written, Fraction(1), seed)
    except ValueError:
        site_file.unlink()
        split.unlink(missing_ok=True)
        raise
    say(f"site file  {site_file}")
    _say_new_classes(written)
    if dataset == "table" and prepare:
        prepare_images([site_file])
    say(f"next       surgagg data audit {site_file} --out audit")


def official(dataset: str, folder: Path) -> dict[str, Any]:
    """Keys of the site file of an official download, but for `split`."""
    labels, metadata, images = official_files(dataset, folder)
    return {"labels": labels, "metadata": metadata, "images": images}


def _say_new_classes(written: SiteFile) -> None:
    """Say which classes the vocabulary does not know, with the nearest it knows."""
    from cxr_study.data.labels.class_overlap import SiteClasses, class_report, print_undecided
    from cxr_study.data.labels.label_table import classes as classes_of
    from cxr_study.data.sites.site_data import labelled_classes, read_labels

    columns = classes_of(read_labels(written))
    labelled = labelled_classes(written, columns)
    found = SiteClasses(written.site, written.dataset, labelled, tuple(columns), written.distinct)
    print_undecided(class_report([found]), console)


def _refuse_without_images(written: SiteFile) -> None:
    from cxr_study.data.sites.site_data import find_files, read_labels
    from cxr_study.data.sites.site_file import SiteFileError

    table = read_labels(written)
    if not any(find_files(written, table["image"])):
        raise SiteFileError(
            f"none of the {len(table)} images of these labels lie below {written.images}, first "
            f"{table['image'][0]}. Put the images there, or link them."
        )


def described(given: Path, options: TableOptions) -> dict[str, Any]:
    """Look at a csv, ask for what it does not tell, and say what was found.

    Args:
        given: The csv, or a folder with it.
        options: What is said already.

    Returns:
        The keys of its site file, but for `split`.

    Raises:
        OwnTableError: Something cannot be told, and there is no terminal to ask on.
        TableError: The csv cannot be read.
    """
    from cxr_study.data.sites.own_table import find_csv, find_images, look

    csv = find_csv(given)
    folder = options.images or (given if given.is_dir() else csv.parent)
    columns, words = dict(options.layout.columns), dict(options.layout.words)
    layout = replace(options.layout, columns=columns, words=words)
    table = look(csv, layout, folder)
    while _asks() and (table.missing or table.unknown):
        _ask(table, columns, words)
        table = look(csv, layout, folder)
    blank = options.blank
    if blank is None and table.blank and _asks():
        blank = _choice(f"{table.blank:,} labels are blank. They count as", BLANKS)
    _require_all(table, blank, layout)
    images, found = find_images(folder, table.images, options.nested)
    _say_found(table, images, found, blank, layout.listing)
    unlike = {n: kind for n, kind in table.columns.items() if n != kind}
    return {
        "labels": csv,
        "images": images,
        "nested": options.nested or None,
        "columns": unlike or None,
        "words": {word: _number(meant) for word, meant in table.words.items()} or None,
        "encoding": table.encoding,
        "findings": layout.findings and layout.findings.model_dump(exclude_none=True),
        "threshold": layout.threshold,
        "blank": blank if table.blank else None,
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


def _asks() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()


def _ask(table: OwnTable, columns: dict[str, str], words: dict[str, str]) -> None:
    """Ask for a needed column, or for what the unknown words of a column mean."""
    from cxr_study.data.readers.table_layout import IGNORED, word_fault

    for kind, names in table.missing.items():
        what = "the image's file" if kind == "image" else "the patient"
        columns[_choice(f"Which column names {what}?", names)] = kind
        return
    for name, unknown in table.unknown.items():
        say(f"Column '{name}' has words without a meaning: 1, 0, -1 (uncertain), a blank, or")
        say(f"'{IGNORED}' for the whole column.")
        for word in unknown:
            meant = typer.prompt(f"  '{word}' means", default="", show_default=False).strip()
            if meant == IGNORED:
                columns[name] = IGNORED
                return
            if fault := word_fault(meant):
                say(f"  needs {fault}.")
                return
            words[word] = meant
        return


def _choice(question: str, names: Sequence[str]) -> str:
    for number, name in enumerate(names, start=1):
        say(f"  {number}  {name}")
    number = 0
    while not 1 <= number <= len(names):
        number = typer.prompt(f"{question} (1 to {len(names)})", type=int)
    return names[number - 1]


def _require_all(table: OwnTable, blank: str | None, layout: TableLayout) -> None:
    """Refuse a csv that leaves something open; names all of it, each with the option it takes."""
    from cxr_study.data.sites.own_table import OwnTableError, listed

    needs = [
        f"which column names the {kind}: --column '<name>={kind}'; it may be {listed(names)}"
        for kind, names in table.missing.items()
    ]
    needs += [
        f"what {listed(unknown)} in column '{name}' mean: --word '{unknown[0]}=1' (or 0, -1, a "
        f"view, F, M; nothing for a blank), or --column '{name}=ignored'"
        for name, unknown in table.unknown.items()
    ]
    if table.blank and blank is None:
        what = "--blank negative, or --blank 'not labelled'"
        if layout.findings is not None and layout.findings.unlisted is None:
            what += ", or --unlisted negative for what images that list others do not list"
        stand = [word for word, meaning in table.words.items() if not meaning]
        named = f" ({listed(stand)} among them; --word '{stand[0]}=-1': uncertain)" if stand else ""
        needs.append(f"what the {table.blank:,} blank labels{named} count as: {what}")
    if needs:
        raise OwnTableError("\n  ".join([f"{table.csv} does not tell everything. Say", *needs]))


def _say_found(
    table: OwnTable, images: Path, found: int, blank: str | None, listing: Sequence[str]
) -> None:
    """Say what goes into the site file, and what does not."""
    from cxr_study.data.readers.table_layout import IGNORED

    form = f"{table.rows:,} rows, {table.separator} between the cells"
    if table.encoding:
        form += f", {table.encoding}"
        form += f" (so that it reads {', '.join(table.shown)})" if table.shown else ""
    say(f"csv        {table.csv}: {form}")
    if table.repeated:
        say(f"repeated   {table.repeated:,} rows say what an earlier one does; each counts once")
    used = {kind: name for name, kind in table.columns.items() if kind != IGNORED}
    used |= dict(zip(("findings", "value"), listing, strict=False))
    say(f"columns    {', '.join(f'{kind}: {name}' for kind, name in used.items())}")
    named = (f"{name} ({number:,} positive)" for name, number in table.positives.items())
    say(f"classes    {', '.join(named)}")
    if table.words:
        meant = (f"{word} = {meaning or 'blank'}" for word, meaning in table.words.items())
        say(f"words      {', '.join(meant)}")
    if table.blank:
        say(f"blank      {table.blank:,} labels, which count as {blank}")
    ignored = [
        name or "(without a name)" for name, kind in table.columns.items() if kind == IGNORED
    ]
    if ignored:
        say(f"ignored    {', '.join(ignored)}")
    if "view" not in used:
        say("view       not told: all images count as frontal")
    say(f"images     {found:,} of {len(table.images):,} below {images}")


def _number(text: str) -> int | str:
    return int(text) if text.lstrip("-").isdecimal() else text
