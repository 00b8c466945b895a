"""Inspect a hospital's own csv and find its images: which columns are classes, what is missing.

Nothing is guessed: the role of a column is the one that a person gives, or follows exactly from its
header and cells. If the csv names images by a number in their DICOM headers, such as an accession
number, the headers are read once, into an index next to the site file, with the size and time of
each file:

    AccessionNumber,image,view,bytes,mtime_ns
    0012345,export/1.dcm,PA,8389120,1764255148000000000
    0012345,export/2.dcm,lateral,8389120,1764255149000000000
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from cxr_study.common import progress
from cxr_study.common.errors import InputError
from cxr_study.common.spelling import key
from cxr_study.data.images.image_files import ImageError, file_stamp, locate, stat_files, walk
from cxr_study.data.labels.csv_columns import SEPARATORS, CsvColumns, open_csv, read_columns
from cxr_study.data.labels.label_table import BLANK, classes
from cxr_study.data.readers import read
from cxr_study.data.readers.cell_values import NO_CLASS, PROBABILITY
from cxr_study.data.readers.mimic import view
from cxr_study.data.readers.table import (
    PLAIN,
    cell_parser,
    column_roles,
    missing_facts_error,
    quote_words,
)
from cxr_study.data.readers.table_layout import IGNORED
from cxr_study.data.sites.site_file import SiteFile

_SAMPLE = 200  # images by which folders are compared
_STAMP = ("bytes", "mtime_ns")  # columns of an index: the state of a file when its header was read


def find_csv(given: Path) -> Path:
    """Find the csv (or .csv.gz or .tsv) in a folder.

    Args:
        given: A csv, which is returned, or a folder, searched at any depth.

    Raises:
        InputError: There is none, or more than one.
    """
    if given.is_file():
        return given
    folders = walk(str(given)) if given.is_dir() else ()
    files = [Path(parent, name) for parent, names in folders for name in sorted(names)]
    found = [file for file in files if file.name.lower().endswith((".csv", ".csv.gz", ".tsv"))]
    if len(found) != 1:
        has = ", ".join(map(str, found[:5])) or "none"
        raise InputError(f"needs a csv, or a folder with one; {given} has {has}.")
    return found[0]


def inspect_csv(
    site: SiteFile, by_number: bool = False
) -> tuple[dict[str, str], pd.DataFrame, list[str]]:
    """Inspect a hospital's own csv.

    Classes are the columns whose cells are 1, 0, -1 or blank, or words with a given meaning.

    Args:
        site: The site file, with the facts that are given so far.
        by_number: Whether the csv names images by a number in their DICOM headers.

    Returns:
        Column -> role, for columns that are not classes; the label table as read; and lines for
        people about what was found.

    Raises:
        InputError: The file cannot be read as csv; rows of an image contradict each other; the site
            file names a column that does not exist; or facts are missing: lists all of them, with
            the option that gives each.
    """
    (csv,) = site.labels
    file = open_csv(csv, encoding=site.encoding)
    described, needs = column_roles(csv, file.header, site)
    kinds = {"": IGNORED} | described  # "": row numbers of a spreadsheet
    used = [name for name in file.header if kinds.get(name) != IGNORED]
    cells = read_columns(file, used, several_lines=used)
    _refuse_whole_rows(cells, [name for name in used if kinds.get(name) == "image"], file.separator)
    unused = {name: "as given" for name, what in site.columns.items() if what == IGNORED}
    labelled, blanks = bool(site.listing), 0
    for name in used:
        kind, is_listing = kinds.get(name), name in site.listing
        if kind in ("image", "patient") or name in site.listing[:1]:
            continue
        texts = Counter(cells[name].tolist())
        known, odd = _understood(texts, cell_parser(site, name, kind))
        silent = {text for text, value in known.items() if value == BLANK}
        is_class = kind is None and not is_listing
        if is_class and site.listing:
            kinds[name], unused[name] = IGNORED, "not a column of findings"
            if len(site.listing) == 1 and known.keys() - silent and not odd:
                needs.append(
                    f"whether column '{name}' has the labels of the findings: --value '{name}', or "
                    f"--column '{name}={IGNORED}'"
                )
        elif is_class and known.keys() <= silent:
            kinds[name], unused[name] = IGNORED, quote_words(odd) or "blank"
        elif odd:
            needs.append(_ask_for_words(name, kind, odd))
        elif is_class and key(name) in NO_CLASS:
            unused[name] = "not a class; blanks of its rows are negative"
        elif is_class:
            labelled = True
            blanks += sum(texts[text] for text in silent)
    if not labelled:
        needs.append(
            "which columns are classes: the meaning of words in them (--word 'ja=1'), the column "
            "that lists findings (--findings '<name>'), or the smallest probability that is "
            "positive (--threshold 0.5)"
        )
    kinds = {name: kinds[name] for name in file.header if name in kinds}
    table = pd.DataFrame()
    if not needs:
        layout = site.model_copy(update={"columns": kinds})
        table = read("table", [csv], csv if by_number else None, layout, site.images)
        blanks = int((table[classes(table)] == BLANK).to_numpy().sum())
    if blanks and site.blank is None:
        ways = "--blank negative, or --blank 'not labelled'"
        if site.findings is not None and site.findings.unlisted is None:
            ways += ", or --unlisted negative for findings that an image does not list"
        needs.append(f"the meaning of the {blanks:,} blank labels: {ways}")
    if needs:
        rest = [f"Not used: {name} ({why})" for name, why in unused.items() if why != "as given"]
        raise missing_facts_error(csv, needs, rest)
    what = {kind: name for name, kind in kinds.items() if kind != IGNORED}
    what |= dict(zip(("findings", "value"), site.listing, strict=False))
    found = [
        f"csv        {csv}: {len(cells.cells):,} rows, {SEPARATORS[file.separator]} between the "
        "cells",
        f"columns    {', '.join(f'{kind}: {name}' for kind, name in what.items())}",
        *([f"blank      {blanks:,} labels, which count as {site.blank}"] if blanks else []),
        *(f"ignored    {name}: {why}" for name, why in unused.items()),
    ]
    if "view" not in what:
        views = "from each header" if by_number else "not given: all images count as frontal"
        found.append(f"view       {views}")
    return kinds, table, found


def find_images(folder: Path, images: Sequence[str], nested: bool = False) -> tuple[Path, int]:
    """Find the images folder: the one to which the paths of a csv are relative.

    Args:
        folder: Where to search, at any depth.
        images: Paths of the images, as in a label table.
        nested: Whether images may be in subfolders that the csv does not name; then the images
            folder is `folder` itself.

    Returns:
        The images folder, and the number of images found there.

    Raises:
        ImageError: No image is found, some are elsewhere below `folder`, two files match an image,
            or a name differs from that of a file only in case.
    """
    folders = [folder] if nested else [folder, *(Path(parent) for parent, _ in walk(str(folder)))]
    best = max(folders, key=lambda each: sum(map(bool, locate(each, images[:_SAMPLE], 0, nested))))
    files = locate(best, images, 0, nested)
    missing = [path for path, file in zip(images, files, strict=True) if file is None]
    if missing:
        _refuse_other_case(best, missing)
    if len(missing) == len(images):
        raise ImageError(
            f"none of the {len(images)} images are below {folder}, first {images[0]}. Give the "
            "folder to which the csv's paths are relative (--images), or use --nested to search "
            "all folders below."
        )
    if not nested and any(locate(folder, missing, 0, True)):
        raise ImageError(
            f"{len(missing)} of {len(images)} images are not at their path below {best}; some are "
            "in other folders. Use --nested to search all folders, or give the one folder to use "
            "(--images)."
        )
    return best, len(images) - len(missing)


def _refuse_other_case(folder: Path, missing: Sequence[str]) -> None:
    """Refuse images whose names differ from those of files only in case."""
    names = {name.casefold(): name for _, names in walk(str(folder)) for name in names}
    found = ((path, names.get(Path(path).name.casefold())) for path in missing)
    other = [(path, name) for path, name in found if name and name != Path(path).name]
    if other:
        raise ImageError(
            f"{len(other)} images differ from a file below {folder} only in upper and lower case, "
            f"first '{other[0][0]}' from '{other[0][1]}'. Write them alike."
        )


def _understood(
    texts: Mapping[str, int], parser: Callable[[str], object]
) -> tuple[dict[str, object], list[str]]:
    """Text -> value, for texts that the parser accepts; and the others, most frequent first."""
    known, odd = {}, []
    for text in sorted(texts, key=lambda text: -texts[text]):
        try:
            known[text] = parser(text)
        except ValueError:
            odd.append(text)
    return known, odd


def _ask_for_words(name: str, what: str | None, odd: Sequence[str]) -> str:
    """Line about words in a column without a meaning, with the options that give one."""
    example = {"view": "lateral", "sex": "F", "age": "63"}.get(what or "", "1")
    text = f"{name}:{odd[0]}" if what else odd[0]
    word = f"--word '{text}={example}' (nothing after the = for a blank)"
    if what is None and any(map(PROBABILITY.fullmatch, odd)):
        word += ", --threshold 0.5"
    return (
        f"what {quote_words(odd)} in column '{name}' mean: {word}, or --column '{name}={IGNORED}'"
    )


def _refuse_whole_rows(cells: CsvColumns, images: Sequence[str], separator: str) -> None:
    """Refuse a cell that contains whole rows, which an extra quote causes."""
    for image in images:
        ending = re.escape(cells[image].map(lambda name: Path(name).suffix).mode()[0]) or "(?!)"
        for name in map(str, cells.cells):
            row = cells[name].str.contains(rf"\n.*{ending}\"?(?:{separator}|\n|$)")
            cells.refuse(row, name, "the cell contains a whole row; is there an extra quote?")


def write_index(folder: Path, keyword: str, csv: Path) -> str:
    """Read the headers of all DICOM files below a folder and write an index of their numbers.

    Args:
        folder: The images folder.
        keyword: DICOM keyword of the number (PS3.6), such as AccessionNumber.
        csv: File to write, with a row per image, sorted by path, see the module.

    Returns:
        A line for people: the number of images, and which files were skipped for which reason.

    Raises:
        ImageError: There is no such keyword, or no image has such a number.
    """
    from pydicom.datadict import keyword_dict  # slow to import, and not needed by `join`

    from cxr_study.data.images.dicom import DicomError, read_number

    if keyword not in keyword_dict:
        raise ImageError(f"'{keyword}' is not a DICOM keyword, such as AccessionNumber.")
    files = sorted(Path(parent, name) for parent, names in walk(str(folder)) for name in names)
    rows: list[tuple[str, str, str, int, int]] = []
    others: dict[str, list[str]] = {}
    with progress.bar("reading headers") as report:
        for done, path in enumerate(files, 1):
            file = path.relative_to(folder).as_posix()
            try:
                number, position = read_number(path, keyword)
                rows.append((number, file, view(position), *file_stamp(str(path))[:2]))
            except DicomError as error:
                others.setdefault(str(error), []).append(file)
            report(done, len(files))
    skipped = [f"{len(of):,} files ({why}), first {of[0]}" for why, of in others.items()]
    if not rows:
        has = "; ".join(skipped) or "no file"
        raise ImageError(f"{folder} needs images with a DICOM {keyword}, see --images; has {has}.")
    csv.parent.mkdir(parents=True, exist_ok=True)
    index = pd.DataFrame(rows, columns=[keyword, "image", "view", *_STAMP])
    index.to_csv(csv, index=False, lineterminator="\n", errors="backslashreplace")
    found = f"{len(rows):,} with a DICOM {keyword} below {folder}: {csv}"
    return "; not used: ".join([found, *skipped])


def join(table: pd.DataFrame, csv: Path, folder: Path) -> pd.DataFrame:
    """Join labels and images by the number in the images' DICOM headers.

    Args:
        table: Label table as read, whose column `image` has numbers, each once.
        csv: The index of images, see the module; its first column has the number.
        folder: The images folder.

    Returns:
        A label table with a row per image, in the order of `table`; several images may have one
        number. Views come from `table`, else from the index. Notes count numbers and images
        without a partner.

    Raises:
        InputError: The index is not valid, or has none of the numbers; or a file has changed, and
            may be the image of another number.
    """
    file = open_csv(csv)
    keyword = file.header[0]
    again = f"Remove the site file and repeat: surgagg data site table ... --images-by {keyword}"
    index = read_columns(file, [keyword, "image", "view", *_STAMP])
    index.require_unique("image")
    views = index.decode("view", cell_parser(PLAIN, "view", "view"))
    numbers, images = pd.Index(table["image"]), index["image"].to_numpy()
    row = numbers.get_indexer(index[keyword])
    chosen = np.argsort(row, kind="stable")[(row < 0).sum() :]
    if not len(chosen):
        raise InputError(
            f"{csv}: none of its numbers, first {keyword} '{index[keyword].iloc[0]}', is one of "
            f"the {len(numbers):,} of the labels, first '{numbers[0]}'. Name images by another "
            "number (--images-by), or give the column with this one; leading zeros count."
        )
    files = [str(folder / image) for image in images[chosen]]
    now = (source.stamp for source in stat_files(folder, images[chosen], files)[0])
    then = index.cells[[*_STAMP]].to_numpy()[chosen].tolist()
    changed = np.zeros(len(row), bool)
    changed[chosen] = [
        stamp is not None and [*map(str, stamp[:2])] != read
        for stamp, read in zip(now, then, strict=True)
    ]
    message = "'{}' has changed since its header was read, and may have another number. "
    index.refuse(changed, "image", message + again, images)
    joined: pd.DataFrame = table.iloc[row[chosen]].reset_index(drop=True)
    own = joined["view"]
    joined["image"], joined["view"] = images[chosen], own.where(own != "", views[chosen])
    left_out = {
        f"{keyword} of the labels match no image": numbers[~numbers.isin(index[keyword])],
        f"images have no row of labels with their {keyword}": images[row < 0],
    }
    joined.attrs["notes"] = table.attrs["notes"] + [
        f"{len(names):,} {what}, first {names[0]}" for what, names in left_out.items() if len(names)
    ]
    return joined
