"""A hospital's own csv.

    image,patient,view,sex,age,Cardiomegaly,Pneumonia
    p1/1.png,17,PA,F,63,1,0
    p1/2.png,17,lateral,F,63,,-1

`image` and `patient` are required; `view`, `sex` and `age` are optional; every other column is a
class. A site file may give the names of these columns, the meanings of words, and the column that
lists findings if there is no column for each class; see `table_layout.TableLayout`.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from textwrap import shorten
from typing import Any

import numpy as np
import pandas as pd

from cxr_study.common.errors import InputError
from cxr_study.common.spelling import key, nearest
from cxr_study.data.images.image_files import relative_path
from cxr_study.data.labels.csv_columns import CsvColumns, open_csv, read_columns
from cxr_study.data.labels.label_table import BLANK, LOADED, NEGATIVE, POSITIVE, VIEWS, assemble
from cxr_study.data.readers import cell_values
from cxr_study.data.readers.cell_values import NO_CLASS
from cxr_study.data.readers.table_layout import IGNORED, KINDS, TableLayout

_MOST_QUOTED = 5  # words in a message
_VIEWS = {view.casefold(): view for view in VIEWS}
_SEXES = {"f": "F", "m": "M", "": ""}
_view = cell_values.choice_parser(f"{', '.join(VIEWS[:-1])} or a blank", _VIEWS)
_sex = cell_values.choice_parser("F, M or a blank", _SEXES)
_PARSERS: dict[str, Callable[[str], Any]] = {
    "image": cell_values.non_blank,
    "patient": cell_values.non_blank,
    "view": lambda text: _view(text.casefold()),
    "sex": lambda text: _sex(text.casefold()),
    "age": lambda text: cell_values.age(text.replace(",", ".")),
}


PLAIN = TableLayout()
"""Layout of a csv with the names and words that the reader knows."""


def read(
    csv: Path, layout: TableLayout = PLAIN, images: Path | None = None, by_number: bool = False
) -> pd.DataFrame:
    """Read a hospital's own csv: one line per image, one column per class or a list of findings.

    Cells of `image` are paths below the images folder, with slashes or backslashes, or absolute
    paths below it; with `by_number` any number. `view` is PA, AP, frontal, lateral, other or blank;
    `sex` F, M or blank; `age` years or blank; a label is 1, 0, -1 (uncertain) or blank (not
    mentioned or not examined; the site file decides). Equal rows of an image count once.

    Args:
        csv: The file.
        layout: Names, words and lists of the file. Default: those that the reader knows.
        images: The images folder. Default: the csv's folder.
        by_number: Whether images are named by a number of their DICOM headers.

    Returns:
        The label table as read, with the classes of the file in its order, or sorted if they are
        listed. "No Finding" is not a class; the blanks of its rows become negative. Without a
        column `view` all images are frontal, with `by_number` unknown.

    Raises:
        InputError: See `cxr_study.data.readers`; a fact is missing, see `column_roles`; or rows of
            an image contradict each other.
    """
    file = open_csv(csv, encoding=layout.encoding)
    column_of, names = _columns(csv, file.header, layout)
    lists, listing = layout.findings, layout.listing
    for name in names:
        if key(name) in LOADED:
            raise InputError(
                f"{csv}, line 1, column '{name}': a class cannot have this name; rename or remove "
                "it."
            )
    if all(key(name) in NO_CLASS for name in names) and lists is None:
        raise InputError(
            f"{csv}, line 1: needs a column for every class; has only {', '.join(file.header)}. "
            "Give the meaning of words that are labels (--word '<word>=1'), the column that names "
            "findings (--findings '<name>'; site file: findings: {column: <name>}), or the "
            "smallest probability that is positive (--threshold)."
        )
    wanted = [*column_of.values(), *names, *listing]
    columns = read_columns(file, wanted, several_lines=listing[:1])
    parsers = {column: cell_parser(layout, column, what) for what, column in column_of.items()}
    parsers |= {name: cell_parser(layout, name) for name in (*names, *listing[1:])}
    if not by_number:
        parsers[column_of["image"]] = lambda text: image_name(images or csv.parent, text)
    if lists is not None:
        parsers[lists.column] = cell_values.findings_parser(lists.separator, _folded(layout.words))
    values = columns.decode_all(parsers)
    column_of |= {name: column for column, name in names.items()}
    found = {what: values[column] for what, column in column_of.items()}
    cells = {what: columns[column] for what, column in column_of.items()}
    if lists is not None:
        label, cell = np.full(len(columns.cells), POSITIVE), columns[lists.column]
        if lists.value is not None:
            label, cell = values[lists.value], (cell + " = " + columns[lists.value])
        labels = cell_values.labels_from_lists(values[lists.column], label)
        if not labels:
            raise InputError(f"{csv}, column '{lists.column}': no row names a finding.")
        found, cells = found | labels, cells | dict.fromkeys(labels, cell.rename(lists.column))
    table = _one_per_image(columns, pd.DataFrame(found), cells)
    if lists is not None:
        known = table[list(labels)].dropna(how="all").fillna(NEGATIVE if lists.unlisted else BLANK)
        table[list(labels)] = known.reindex(table.index, fill_value=BLANK)
    view = "" if by_number else "frontal"
    columns_read: dict[str, Any] = {"view": view, "patient": table["image"]} | dict(table)
    about = {what: columns_read.pop(what) for what in KINDS if what in columns_read}
    result = assemble(columns_read, **about)
    if repeated := int(pd.DataFrame(values).duplicated().sum()):
        result.attrs["notes"].append(f"{repeated:,} rows repeat an earlier one; each counts once")
    return cell_values.apply_no_finding(result)


def cell_parser(layout: TableLayout, column: str, what: str | None = None) -> Callable[[str], Any]:
    """Parser of the cells of a column, for `CsvColumns.decode_all`.

    Args:
        layout: Meanings of words, and the threshold of probabilities.
        column: Name of the column.
        what: Its role, one of `KINDS`. None: labels.
    """
    known = _PARSERS.get(what or "", cell_values.label_parser(layout.threshold))
    if what in ("image", "patient"):
        return known
    words = _folded(layout.words)

    def translated(text: str) -> Any:
        folded = text.casefold()
        own = words.get(f"{column.casefold()}:{folded}")
        return known(words.get(folded, text) if own is None else own)

    return translated


def _folded(words: Mapping[str, str]) -> dict[str, str]:
    """Words in the form in which cells are looked up."""
    return {word.strip().casefold(): meant for word, meant in words.items()}


def column_roles(
    csv: Path, header: Sequence[str], layout: TableLayout
) -> tuple[dict[str, str], list[str]]:
    """Determine the roles of columns.

    Args:
        csv: The file, for the error.
        header: Names of all columns.
        layout: Roles that are given; the others follow from the names.

    Returns:
        Column -> its role, see `TableLayout.described`; and what is missing or ambiguous, a line
        each, for people.

    Raises:
        InputError: The layout names a column that does not exist.
    """
    for name in (*layout.columns, *layout.listing):
        if name not in header:
            raise InputError(f"{csv}, line 1: has no column '{name}'; {nearest(name, header)}.")
    described, needs = layout.described(header), []
    alone = layout.patients == "each-image"
    for what in KINDS:
        found = [name for name, kind in described.items() if kind == what]
        needed = what in (("image",) if alone else ("image", "patient"))
        if alone and what == "patient" and found:
            needs.append(
                f"whether each image is a patient, or column '{found[0]}' names patients: --column "
                f"'{found[0]}={IGNORED}', or no --patients each-image"
            )
        elif len(found) > 1 or (needed and not found):
            candidates = found or [name for name in header if name and name not in described]
            may_be = quote_words(candidates)
            hint = " --patients each-image if no column does: each image is a patient"
            needs.append(
                f"which column names the {what}: --column '<name>={what}' (site file: columns: "
                f"{{<name>: {what}}}); {may_be}?"
                + hint
                * (what == "patient" and not found and layout.patients is None)
            )
    return described, needs


def quote_words(words: Iterable[str]) -> str:
    """Quote words for a message; of many only the first."""
    some = [f"'{shorten(word, 60, placeholder=' ...')}'" for word in words]
    more = f" and {len(some) - _MOST_QUOTED} more" if len(some) > _MOST_QUOTED else ""
    return ", ".join(some[:_MOST_QUOTED]) + more


def missing_facts_error(csv: Path, needs: Sequence[str], notes: Sequence[str] = ()) -> InputError:
    """Create the error about facts that neither a csv nor its options contain.

    Args:
        csv: The file.
        needs: What is missing, with the option that gives it, a line each.
        notes: Further lines for people.
    """
    return InputError(
        "\n  ".join([f"{csv}, line 1: does not contain all facts. Give", *needs, *notes])
    )


def _columns(
    csv: Path, header: Sequence[str], layout: TableLayout
) -> tuple[dict[str, str], dict[str, str]]:
    """Role -> column, for descriptors of images; and column -> class."""
    described, needs = column_roles(csv, header, layout)
    if needs:
        raise missing_facts_error(csv, needs)
    column_of = {what: name for name, what in described.items() if what != IGNORED}
    if layout.listing:
        return column_of, {}
    known = dict.fromkeys((*KINDS, *described))
    names = cell_values.class_columns(csv, header, known, "table")
    return column_of, names | {n: n for n in header if key(n) in NO_CLASS and n not in known}


def _one_per_image(
    columns: CsvColumns, rows: pd.DataFrame, cells: Mapping[str, pd.Series]
) -> pd.DataFrame:
    """Combine the rows of each image; a row that contradicts an earlier one is an error.

    Args:
        columns: The csv.
        rows: Values of each row; NaN is no value.
        cells: Column of `rows` -> its cells in the csv, for the error.

    Returns:
        A row per image, in the order of their first rows.
    """
    for name, cell in cells.items():
        number = pd.Series(np.arange(len(rows))).where(rows[name].notna())
        first = number.groupby(rows["image"]).transform("first").fillna(0).to_numpy(int)
        columns.refuse(
            rows[name].notna() & (rows[name] != rows[name].to_numpy()[first]),
            str(cell.name),
            "got '{}', but line {} has '{}' for the same image; correct or remove one of them "
            "(if there is a row for each finding: --findings).",
            cell.to_numpy(),
            columns.cells.index[first],
            cell.to_numpy()[first],
        )
    return rows.groupby("image", sort=False).first().reset_index()


def image_name(folder: Path, text: str) -> str:
    """Name of an image in a label table: its path below the images folder.

    Args:
        folder: The images folder.
        text: A path with slashes or backslashes, relative to the folder or absolute below it.

    Raises:
        ValueError: It is not below the folder.
    """
    text = relative_path(folder, text)
    path = PurePosixPath(text)
    if not path.parts or path.is_absolute() or ".." in path.parts or re.match("[A-Za-z]:", text):
        raise ValueError(
            f"needs the path of a file below the images folder; got '{text}'. Give the folder that "
            "contains it (--images), or write a path relative to this folder."
        )
    return str(path)


def normalize_id(patient: str) -> str:
    """Normal form of a patient's id: without leading zeros, and the ".0" that spreadsheets add.

    Characters are in Unicode's normal form KC, without invisible ones (category Cf).

    Example:
        >>> [normalize_id(text) for text in ("007", "7.0", "A7")]
        ['7', '7', 'A7']
    """
    visible = (each for each in patient if unicodedata.category(each) != "Cf")
    patient = unicodedata.normalize("NFKC", "".join(visible)).strip()
    number = re.fullmatch(r"([0-9]+)\.0+", patient)
    return (number[1] if number else patient).lstrip("0") or "0"


def unify_ids(table: pd.DataFrame) -> pd.DataFrame:
    """Unify the spellings of patient ids, such as 7, 0007 and 7.0: the shortest one replaces all.

    Args:
        table: Label table as read; stays unchanged.

    Returns:
        The label table with unified ids. Its notes count the patients with several spellings, and
        the ids that differ only in case, which stay different.
    """
    ids = pd.Series(sorted(table["patient"].unique(), key=lambda patient: (len(patient), patient)))
    plains = ids.map(normalize_id)
    shortest = ids.groupby(plains).transform("first")
    notes = list(table.attrs.get("notes", []))
    several = ids[plains.duplicated(keep=False)]
    if len(several):
        first = ", ".join(several[plains == normalize_id(several.iloc[0])])
        notes.append(
            f"{plains[several.index].nunique():,} patients are spelt in several ways ({first}), "
            "and count as one each; 'patients: exact' keeps them apart (--patients exact)"
        )
    folded = plains.drop_duplicates().str.casefold()
    alike = ids[folded.index][folded.duplicated(keep=False)]
    if len(alike):
        pair = ", ".join(alike[folded == folded[alike.index[0]]])
        notes.append(
            f"{len(alike):,} patient ids differ from another only in case ({pair}), and count as "
            "different patients"
        )
    table = table.assign(patient=table["patient"].map(dict(zip(ids, shortest, strict=True))))
    table.attrs["notes"] = notes
    return table
