"""A hospital's own csv and its images: which columns are classes, and what nobody has said yet.

Nothing is guessed: a column is what a person says, or what its header and its cells say exactly.
Where the csv names images by a number of their DICOM headers, such as an accession, the headers are
read once, into an index beside the site file; it may be written by hand, too:

    AccessionNumber,image,view
    0012345,export/1.dcm,PA
    0012345,export/2.dcm,lateral
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
from cxr_study.data.images.image_files import ImageError, locate, walk
from cxr_study.data.labels.csv_columns import SEPARATORS, CsvColumns, open_csv, read_columns
from cxr_study.data.labels.label_table import BLANK, classes
from cxr_study.data.readers import read
from cxr_study.data.readers.cell_values import NO_CLASS, PROBABILITY
from cxr_study.data.readers.mimic import view
from cxr_study.data.readers.table import PLAIN, meaning, quoted, roles, unsaid
from cxr_study.data.readers.table_layout import IGNORED
from cxr_study.data.sites.site_file import SiteFile

_SAMPLE = 200  # images that tell the folder


def find_csv(given: Path) -> Path:
    """The csv of a folder, or the one that is given.

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


def look(site: SiteFile, by_number: bool = False) -> tuple[dict[str, str], pd.DataFrame, list[str]]:
    """Look at a hospital's own csv.

    Classes are the columns whose cells are 1, 0, -1 or blank, or words that a person explains.

    Args:
        site: What a person says of it.
        by_number: Whether it names images by a number of their headers.

    Returns:
        Columns that are no classes -> what they are, the label table, and what was found, a line
        each, for people.

    Raises:
        InputError: The file cannot be read as csv, or rows of an image contradict each other; a
            person speaks of a column that there is not; or something is not said: all of it is
            named, with the option that says it.
    """
    (csv,) = site.labels
    file = open_csv(csv, encoding=site.encoding)
    described, needs = roles(csv, file.header, site)
    kinds = {"": IGNORED} | described  # "": a spreadsheet's numbering
    used = [name for name in file.header if kinds.get(name) != IGNORED]
    cells = read_columns(file, used, several_lines=used)
    _refuse_whole_rows(cells, [name for name in used if kinds.get(name) == "image"], file.separator)
    unused = {name: "as said" for name, what in site.columns.items() if what == IGNORED}
    labelled, blanks = bool(site.listing), 0
    for name in used:
        kind, listed = kinds.get(name), name in site.listing
        if kind in ("image", "patient") or name in site.listing[:1]:
            continue
        texts = Counter(cells[name].tolist())
        known, odd = _understood(texts, meaning(site, name, kind))
        silent = {text for text, value in known.items() if value == BLANK}
        is_class = kind is None and not listed
        if is_class and site.listing:
            kinds[name], unused[name] = IGNORED, "it lists no findings"
            if len(site.listing) == 1 and known.keys() - silent and not odd:
                needs.append(
                    f"what the labels of column '{name}' beside the findings are: --value "
                    f"'{name}' (of the findings), or --column '{name}={IGNORED}'"
                )
        elif is_class and known.keys() <= silent:
            kinds[name], unused[name] = IGNORED, quoted(odd) or "blank"
        elif odd:
            needs.append(_ask_for_words(name, kind, odd))
        elif is_class and key(name) in NO_CLASS:
            unused[name] = "no class; blanks of its rows are negative"
        elif is_class:
            labelled = True
            blanks += sum(texts[text] for text in silent)
    if not labelled:
        needs.append(
            "which columns are classes: what words in them mean (--word 'ja=1'), which column "
            "lists findings (--findings '<name>'), or from where on a probability is positive "
            "(--threshold 0.5)"
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
            ways += ", or --unlisted negative for what images that list others do not list"
        needs.append(f"what the {blanks:,} blank labels count as: {ways}")
    if needs:
        rest = [f"Not used: {name} ({why})" for name, why in unused.items() if why != "as said"]
        raise unsaid(csv, needs, rest)
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
        views = "of each header" if by_number else "not told: all images count as frontal"
        found.append(f"view       {views}")
    return kinds, table, found


def find_images(folder: Path, images: Sequence[str], nested: bool = False) -> tuple[Path, int]:
    """Find the folder below which the images lie where the csv says.

    Args:
        folder: Where to look, at any depth.
        images: Their paths, as in a label table.
        nested: Whether they lie in folders that the csv does not name: then it is `folder` itself.

    Returns:
        The folder, and how many of the images are there.

    Raises:
        ImageError: None is found, some lie elsewhere below `folder`, or two files could be an
            image.
    """
    folders = [folder] if nested else [folder, *(Path(parent) for parent, _ in walk(str(folder)))]
    best = max(folders, key=lambda each: sum(map(bool, locate(each, images[:_SAMPLE], 0, nested))))
    files = locate(best, images, 0, nested)
    missing = [path for path, file in zip(images, files, strict=True) if file is None]
    if missing:
        _refuse_other_case(best, missing)
    if len(missing) == len(images):
        raise ImageError(
            f"none of the {len(images)} images lie below {folder}, first {images[0]}. Name the "
            "folder below which they lie as the csv says (--images), or say --nested to look in "
            "all folders below."
        )
    if not nested and any(locate(folder, missing, 0, True)):
        raise ImageError(
            f"{len(missing)} of {len(images)} images do not lie below {best} as the csv says; some "
            "lie in other folders. Say --nested to take each where it lies, or name the one folder "
            "that counts (--images)."
        )
    return best, len(images) - len(missing)


def _refuse_other_case(folder: Path, missing: Sequence[str]) -> None:
    """Refuse images of which a file differs in the case of its letters alone."""
    names = {name.casefold(): name for _, names in walk(str(folder)) for name in names}
    found = ((path, names.get(Path(path).name.casefold())) for path in missing)
    other = [(path, name) for path, name in found if name and name != Path(path).name]
    if other:
        raise ImageError(
            f"{len(other)} images differ from a file below {folder} in upper and lower case alone, "
            f"first '{other[0][0]}' from '{other[0][1]}'. Write them alike."
        )


def _understood(
    texts: Mapping[str, int], meant: Callable[[str], object]
) -> tuple[dict[str, object], list[str]]:
    """What texts mean, and those that mean nothing, the most frequent first."""
    known, odd = {}, []
    for text in sorted(texts, key=lambda text: -texts[text]):
        try:
            known[text] = meant(text)
        except ValueError:
            odd.append(text)
    return known, odd


def _ask_for_words(name: str, what: str | None, odd: Sequence[str]) -> str:
    """What a person must say about words of a column that mean nothing yet."""
    example = {"view": "lateral", "sex": "F", "age": "63"}.get(what or "", "1")
    text = f"{name}:{odd[0]}" if what else odd[0]
    word = f"--word '{text}={example}' (nothing behind the = for a blank)"
    if what is None and any(map(PROBABILITY.fullmatch, odd)):
        word += ", --threshold 0.5"
    return f"what {quoted(odd)} in column '{name}' mean: {word}, or --column '{name}={IGNORED}'"


def _refuse_whole_rows(cells: CsvColumns, images: Sequence[str], separator: str) -> None:
    """Refuse a cell that holds whole rows, as a quote too many makes it."""
    for image in images:
        ending = re.escape(cells[image].map(lambda name: Path(name).suffix).mode()[0]) or "(?!)"
        for name in map(str, cells.cells):
            row = cells[name].str.contains(rf"\n.*{ending}\"?(?:{separator}|\n|$)")
            cells.refuse(row, name, "the cell has a whole row in it; is there a quote too many?")


def write_index(folder: Path, keyword: str, csv: Path) -> str:
    """Read the headers of all DICOM files below a folder and write the index.

    Args:
        folder: The images folder.
        keyword: Of the number, as DICOM spells it (PS3.6).
        csv: Receives a row per image, by path.

    Returns:
        How many images the index has, and what was passed over and why, for people.

    Raises:
        ImageError: There is no such keyword, or no image with such a number.
    """
    from pydicom.datadict import keyword_dict  # takes its time, and `join` needs none

    from cxr_study.data.images.dicom import DicomError, read_number

    if keyword not in keyword_dict:
        raise ImageError(f"'{keyword}' is no DICOM keyword such as AccessionNumber.")
    files = sorted(Path(parent, name) for parent, names in walk(str(folder)) for name in names)
    rows: list[tuple[str, str, str]] = []
    others: dict[str, list[str]] = {}
    with progress.bar("reading headers") as report:
        for done, path in enumerate(files, 1):
            file = path.relative_to(folder).as_posix()
            try:
                number, position = read_number(path, keyword)
                rows.append((number, file, view(position)))
            except DicomError as error:
                others.setdefault(str(error), []).append(file)
            report(done, len(files))
    passed_over = [f"{len(of):,} files ({why}), first {of[0]}" for why, of in others.items()]
    if not rows:
        has = "; ".join(passed_over) or "no file"
        raise ImageError(f"{folder} needs images with a DICOM {keyword}, see --images; has {has}.")
    csv.parent.mkdir(parents=True, exist_ok=True)
    index = pd.DataFrame(rows, columns=[keyword, "image", "view"])
    index.to_csv(csv, index=False, lineterminator="\n", errors="backslashreplace")
    found = f"{len(rows):,} with a DICOM {keyword} below {folder}: {csv}"
    return "; not used: ".join([found, *passed_over])


def join(table: pd.DataFrame, csv: Path) -> pd.DataFrame:
    """Give each image the row of its number.

    Args:
        table: Label table whose `image` is the number, each once.
        csv: The index: the number first, in a column of any name.

    Returns:
        A row per image, in the order of the table; a view that the table does not know is the
        index's. Its notes count the numbers and the images that are left out.

    Raises:
        InputError: The index does not hold what it should, or has none of the numbers.
    """
    file = open_csv(csv)
    keyword = file.header[0]
    index = read_columns(file, [keyword, "image", "view"])
    index.require_unique("image")
    views = index.decode("view", meaning(PLAIN, "view", "view"))
    numbers, images = pd.Index(table["image"]), index["image"].to_numpy()
    row = numbers.get_indexer(index[keyword])
    chosen = np.argsort(row, kind="stable")[(row < 0).sum() :]
    if not len(chosen):
        raise InputError(
            f"{csv}: none of its numbers, first {keyword} '{index[keyword].iloc[0]}', is one of "
            f"the {len(numbers):,} that the labels have, first '{numbers[0]}'. Name images by "
            "another number (--images-by), or the column that has this one; leading zeros count."
        )
    joined = table.iloc[row[chosen]].reset_index(drop=True)
    own = joined["view"]
    joined["image"], joined["view"] = images[chosen], own.where(own != "", views[chosen])
    left_out = {
        f"{keyword} of the labels match no image": numbers[~numbers.isin(index[keyword])],
        f"images have no row of labels with their {keyword}": images[row < 0],
        "images have no known view": joined["image"][joined["view"] == ""].tolist(),
    }
    joined.attrs["notes"] = table.attrs["notes"] + [
        f"{len(names):,} {what}, first {names[0]}" for what, names in left_out.items() if len(names)
    ]
    return joined
