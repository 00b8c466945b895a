"""A hospital's own csv, looked at: which columns are classes, and what nobody has said yet.

Nothing is guessed: a column is what a person says, or what its header and its cells say exactly.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from textwrap import shorten

import pandas as pd

from cxr_study.common.spelling import key, nearest
from cxr_study.data.images.image_files import locate, walk
from cxr_study.data.labels.csv_columns import CsvColumns, read_columns
from cxr_study.data.labels.csv_file import SEPARATORS, open_csv
from cxr_study.data.labels.label_table import BLANK, classes
from cxr_study.data.readers import read
from cxr_study.data.readers.cell_values import NO_CLASS, PROBABILITY
from cxr_study.data.readers.table import meaning
from cxr_study.data.readers.table_layout import IGNORED, KINDS, TableLayout, word_fault

_LISTED = 5  # words of a column that are told
_SAMPLE = 200  # images that tell the folder


class OwnTableError(ValueError):
    """What a hospital's csv means, or where its images are, cannot be told."""


@dataclass(frozen=True, eq=False)
class OwnTable:
    """What a csv is.

    Attributes:
        csv: The file.
        rows: Of the file.
        separator: What stands between its cells, as a word.
        columns: Columns that are no classes -> what they are: one of `KINDS`, or ignored.
        unused: Ignored columns -> why.
        blank: Labels that are blank.
        table: The label table.
    """

    csv: Path
    rows: int
    separator: str
    columns: Mapping[str, str]
    unused: Mapping[str, str]
    blank: int
    table: pd.DataFrame


def find_csv(given: Path) -> Path:
    """The csv of a folder, or the one that is given.

    Raises:
        OwnTableError: There is none, or more than one.
    """
    if given.is_file():
        return given
    folders = walk(str(given)) if given.is_dir() else ()
    files = [Path(parent, name) for parent, names in folders for name in sorted(names)]
    found = [file for file in files if file.name.lower().endswith((".csv", ".csv.gz", ".tsv"))]
    if len(found) != 1:
        has = ", ".join(map(str, found[:5])) or "none"
        raise OwnTableError(f"needs a csv, or a folder with one; {given} has {has}.")
    return found[0]


def look(
    csv: Path,
    said: TableLayout,
    images: Path | None = None,
    blank: str | None = None,
    index: Path | None = None,
) -> OwnTable:
    """Look at a csv.

    Classes are the columns whose cells are 1, 0, -1 or blank, or words that a person explains.

    Args:
        csv: The file.
        said: What a person says of it, as in a site file.
        images: Folder below which an absolute path of the csv must lead; None: the csv's.
        blank: What a person says that blank labels count as.
        index: Where the images of its numbers will stand; None: it has paths.

    Raises:
        TableError: The file cannot be read as csv, or rows of an image contradict each other.
        OwnTableError: A person speaks of a column that there is not, or what a column or a word
            is said to be is nothing that it can be; or something is not said: all of it is named,
            with the option that says it.
    """
    file = open_csv(csv, encoding=said.encoding)
    _check(csv, file.header, said)
    kinds = {"": IGNORED} | said.described(file.header)  # "": a spreadsheet's numbering
    used = [name for name in file.header if kinds.get(name) != IGNORED]
    needs = []
    for needed in ("image",) if said.patients == "each-image" else ("image", "patient"):
        found = [name for name in used if kinds.get(name) == needed]
        if len(found) != 1:
            may_be = listed(found or [name for name in used if name not in kinds])
            needs.append(f"which column names the {needed}: --column '<name>={needed}'; {may_be}?")
    if needs and "patient" not in kinds.values() and said.patients is None:
        needs[-1] += " --patients each-image where no column does: each image is a patient"
    cells = read_columns(file, used, several_lines=used)
    _refuse_whole_rows(cells, [name for name in used if kinds.get(name) == "image"], file.separator)
    unused = {name: "as said" for name, what in said.columns.items() if what == IGNORED}
    labelled, blanks = [], 0
    for name in used:
        kind = kinds.get(name)
        if kind in ("image", "patient") or name in said.listing[:1]:
            continue
        texts = Counter(cells[name].tolist())
        known, odd = _understood(texts, meaning(said, name, kind))
        silent = {text for text, value in known.items() if value == BLANK}
        if kind is None and name not in said.listing:
            if said.listing:
                unused[name] = "it lists no findings"
                if len(said.listing) == 1 and known.keys() - silent and not odd:
                    needs.append(
                        f"what the labels of column '{name}' beside the findings are: --value "
                        f"'{name}' (of the findings), or --column '{name}={IGNORED}'"
                    )
            elif known.keys() <= silent:
                unused[name] = listed(odd) if odd else "blank"
        if name in unused:
            kinds[name] = IGNORED
        elif odd:
            needs.append(_ask_for_words(name, kind, odd))
        elif kind is None and key(name) in NO_CLASS:
            unused[name] = "no class; blanks of its rows are negative"
        elif kind is None and name not in said.listing:
            labelled.append(name)
            blanks += sum(texts[text] for text in silent)
    if not labelled and not said.listing:
        needs.append(
            "which columns are classes: what words in them mean (--word 'ja=1'), which column "
            "lists findings (--findings '<name>'), or from where on a probability is positive "
            "(--threshold 0.5)"
        )
    kinds = {name: kinds[name] for name in file.header if name in kinds}
    table = pd.DataFrame()
    if not needs:
        table = read("table", [csv], index, replace(said, columns=kinds), images)
        blanks = int((table[classes(table)] == BLANK).to_numpy().sum())
    if blanks and blank is None:
        ways = "--blank negative, or --blank 'not labelled'"
        if said.findings is not None and said.findings.unlisted is None:
            ways += ", or --unlisted negative for what images that list others do not list"
        needs.append(f"what the {blanks:,} blank labels count as: {ways}")
    if needs:
        rest = [f"Not used: {name} ({why})" for name, why in unused.items() if why != "as said"]
        raise OwnTableError("\n  ".join([f"{csv} does not tell everything. Say", *needs, *rest]))
    return OwnTable(csv, len(cells.lines), SEPARATORS[file.separator], kinds, unused, blanks, table)


def find_images(folder: Path, images: Sequence[str], nested: bool = False) -> tuple[Path, int]:
    """Find the folder below which the images lie where the csv says.

    Args:
        folder: Where to look, at any depth.
        images: Their paths, as in a label table.
        nested: Whether they lie in folders that the csv does not name: then it is `folder` itself.

    Returns:
        The folder, and how many of the images are there.

    Raises:
        OwnTableError: None is found, or some lie elsewhere below `folder`.
        ImageError: Two files could be an image.
    """
    folders = [folder] if nested else [folder, *(Path(parent) for parent, _ in walk(str(folder)))]
    best = max(folders, key=lambda each: sum(map(bool, locate(each, images[:_SAMPLE], 0, nested))))
    files = locate(best, images, 0, nested)
    missing = [path for path, file in zip(images, files, strict=True) if file is None]
    if missing:
        _refuse_other_case(best, missing)
    if len(missing) == len(images):
        raise OwnTableError(
            f"none of the {len(images)} images lie below {folder}, first {images[0]}. Name the "
            "folder below which they lie as the csv says (--images), or say --nested to look in "
            "all folders below."
        )
    if not nested and any(locate(folder, missing, 0, True)):
        raise OwnTableError(
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
        raise OwnTableError(
            f"{len(other)} images differ from a file below {folder} in upper and lower case alone, "
            f"first '{other[0][0]}' from '{other[0][1]}'. Write them alike."
        )


def listed(words: Iterable[str]) -> str:
    """Name some words, the first of many."""
    some = [f"'{shorten(word, 60, placeholder=' ...')}'" for word in words]
    more = f" and {len(some) - _LISTED} more" if len(some) > _LISTED else ""
    return ", ".join(some[:_LISTED]) + more


def _check(csv: Path, header: Sequence[str], said: TableLayout) -> None:
    """Refuse what a person says that no csv, or not this one, can mean."""
    for name in (*said.columns, *said.listing):
        if name not in header:
            raise OwnTableError(f"{csv} has no column '{name}'; {nearest(name, header)}.")
    for name, what in said.columns.items():
        if what not in (*KINDS, IGNORED):
            raise OwnTableError(f"'{name}' can be {', '.join(KINDS)} or {IGNORED}; got '{what}'.")
    for word, meant in said.words.items():
        if fault := word_fault(meant):
            raise OwnTableError(f"'{word}' can stand for {fault}; got '{meant}'.")


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
    return f"what {listed(odd)} in column '{name}' mean: {word}, or --column '{name}={IGNORED}'"


def _refuse_whole_rows(cells: CsvColumns, images: Sequence[str], separator: str) -> None:
    """Refuse a cell that holds whole rows, as a quote too many makes it."""
    for image in images:
        ending = re.escape(cells[image].map(lambda name: Path(name).suffix).mode()[0]) or "(?!)"
        for name in cells.texts:
            row = cells[name].str.contains(rf"\n.*{ending}\"?(?:{separator}|\n|$)")
            cells.refuse(row, name, "the cell has a whole row in it; is there a quote too many?")
