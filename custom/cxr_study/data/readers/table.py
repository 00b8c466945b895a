"""A hospital's own csv.

    image,patient,view,sex,age,Cardiomegaly,Pneumonia
    p1/1.png,17,PA,F,63,1,0
    p1/2.png,17,lateral,F,63,,-1

`image` and `patient` are needed; `view`, `sex` and `age` may be left out; every other column is a
class. A site file may say what a table calls these columns, what its words mean, and
which column lists findings where there is none for each class.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from textwrap import shorten
from typing import Any

import numpy as np
import pandas as pd

from cxr_study.common.errors import InputError
from cxr_study.common.spelling import key, nearest
from cxr_study.data.images.image_files import below
from cxr_study.data.labels.csv_columns import CsvColumns, open_csv, read_columns
from cxr_study.data.labels.label_table import BLANK, LOADED, NEGATIVE, POSITIVE, VIEWS, assemble
from cxr_study.data.readers import cell_values
from cxr_study.data.readers.cell_values import NO_CLASS
from cxr_study.data.readers.table_layout import IGNORED, KINDS, TableLayout

_LISTED = 5  # words that a message names
_VIEWS = {view.casefold(): view for view in VIEWS}
_SEXES = {"f": "F", "m": "M", "": ""}
_view = cell_values.one_of(f"{', '.join(VIEWS[:-1])} or a blank", _VIEWS)
_sex = cell_values.one_of("F, M or a blank", _SEXES)
_MEANINGS: dict[str, Callable[[str], Any]] = {
    "image": cell_values.filled,
    "patient": cell_values.filled,
    "view": lambda text: _view(text.casefold()),
    "sex": lambda text: _sex(text.casefold()),
    "age": lambda text: cell_values.age(text.replace(",", ".")),
}


PLAIN = TableLayout()
"""Of a csv with the names and the words that the reader knows."""


def read(
    csv: Path, layout: TableLayout = PLAIN, images: Path | None = None, by_number: bool = False
) -> pd.DataFrame:
    """Read a hospital's own csv: one line per image, one column per class, or a list of findings.

    `image` is the path below the images folder, with the slashes of any system, or an absolute one
    that leads below `images` (default: the csv's folder), or with `by_number` any number;
    `view` is PA, AP, frontal, lateral, other or blank; `sex` F, M or blank; `age` years or blank; a
    label 1, 0, -1 (uncertain) or blank (not mentioned, or nobody looked: the site file says which).
    Rows of an image that say the same count once.

    Returns:
        The label table of the file's classes, in its order, or by name where they are listed; "No
        Finding" is no class, but makes the blanks of its rows negative. Without a column `view` all
        images count as frontal, or `by_number` as unknown.
    """
    file = open_csv(csv, encoding=layout.encoding)
    column_of, names = _columns(csv, file.header, layout)
    lists, listing = layout.findings, layout.listing
    for name in names:
        if key(name) in LOADED:
            raise InputError(
                f"{csv}, line 1, column '{name}': no class can have this name; rename or remove it."
            )
    if all(key(name) in NO_CLASS for name in names) and lists is None:
        raise InputError(
            f"{csv}, line 1: needs a column for every class; has only {', '.join(file.header)}. "
            "Explain words that are labels (--word '<word>=1'), or say which column names findings "
            "(--findings '<name>'; site file: findings: {column: <name>}), or from where on a "
            "probability is positive (--threshold)."
        )
    wanted = [*column_of.values(), *names, *listing]
    columns = read_columns(file, wanted, several_lines=listing[:1])
    meanings = {column: meaning(layout, column, what) for what, column in column_of.items()}
    meanings |= {name: meaning(layout, name) for name in (*names, *listing[1:])}
    if not by_number:
        meanings[column_of["image"]] = lambda text: _image(below(images or csv.parent, text))
    if lists is not None:
        meanings[lists.column] = cell_values.findings(lists.separator, _folded(layout.words))
    values = columns.decode_all(meanings)
    column_of |= {name: column for column, name in names.items()}
    said = {what: values[column] for what, column in column_of.items()}
    cells = {what: columns[column] for what, column in column_of.items()}
    if lists is not None:
        label, cell = np.full(len(columns.cells), POSITIVE), columns[lists.column]
        if lists.value is not None:
            label, cell = values[lists.value], (cell + " = " + columns[lists.value])
        labels = cell_values.listed_labels(values[lists.column], label)
        if not labels:
            raise InputError(f"{csv}, column '{lists.column}': no row names a finding.")
        said, cells = said | labels, cells | dict.fromkeys(labels, cell.rename(lists.column))
    table = _one_per_image(columns, pd.DataFrame(said), cells)
    if lists is not None:
        found = table[list(labels)].dropna(how="all").fillna(NEGATIVE if lists.unlisted else BLANK)
        table[list(labels)] = found.reindex(table.index, fill_value=BLANK)
    view = "" if by_number else "frontal"
    whole: dict[str, Any] = {"view": view, "patient": table["image"]} | dict(table)
    about = {what: whole.pop(what) for what in KINDS if what in whole}
    result = assemble(whole, **about)
    if repeated := int(pd.DataFrame(values).duplicated().sum()):
        result.attrs["notes"].append(
            f"{repeated:,} rows say what an earlier one does; each counts once"
        )
    return cell_values.spread_normal(result)


def meaning(layout: TableLayout, column: str, what: str | None = None) -> Callable[[str], Any]:
    """Meaning of the cells of a column, see `CsvColumns.decode_all`: of labels, or of `what`."""
    known = _MEANINGS.get(what or "", cell_values.label_from(layout.threshold))
    if what in ("image", "patient"):
        return known
    words = _folded(layout.words)

    def translated(text: str) -> Any:
        folded = text.casefold()
        own = words.get(f"{column.casefold()}:{folded}")
        return known(words.get(folded, text) if own is None else own)

    return translated


def _folded(words: Mapping[str, str]) -> dict[str, str]:
    return {word.strip().casefold(): meant for word, meant in words.items()}


def roles(
    csv: Path, header: Sequence[str], layout: TableLayout
) -> tuple[dict[str, str], list[str]]:
    """What columns are, by their names, and what nobody has said of them: questions for people.

    Raises:
        InputError: The layout names a column that there is not.
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
                f"whether each image is a patient or column '{found[0]}' names patients: --column "
                f"'{found[0]}={IGNORED}', or no --patients each-image"
            )
        elif len(found) > 1 or (needed and not found):
            may_be = quoted(found or [name for name in header if name and name not in described])
            hint = " --patients each-image where no column does: each image is a patient"
            needs.append(
                f"which column names the {what}: --column '<name>={what}' (site file: columns: "
                f"{{<name>: {what}}}); {may_be}?"
                + hint
                * (what == "patient" and not found and layout.patients is None)
            )
    return described, needs


def quoted(words: Iterable[str]) -> str:
    """Name some words, the first of many."""
    some = [f"'{shorten(word, 60, placeholder=' ...')}'" for word in words]
    more = f" and {len(some) - _LISTED} more" if len(some) > _LISTED else ""
    return ", ".join(some[:_LISTED]) + more


def unsaid(csv: Path, needs: Sequence[str], notes: Sequence[str] = ()) -> InputError:
    """Error about everything that a csv does not tell by itself."""
    return InputError(
        "\n  ".join([f"{csv}, line 1: does not tell everything. Say", *needs, *notes])
    )


def _columns(
    csv: Path, header: Sequence[str], layout: TableLayout
) -> tuple[dict[str, str], dict[str, str]]:
    """Columns of what describes an image, by what they are, and class names by their columns."""
    described, needs = roles(csv, header, layout)
    if needs:
        raise unsaid(csv, needs)
    column_of = {what: name for name, what in described.items() if what != IGNORED}
    if layout.listing:
        return column_of, {}
    known = dict.fromkeys((*KINDS, *described))
    names = cell_values.class_columns(csv, header, known, "table")
    return column_of, names | {n: n for n in header if key(n) in NO_CLASS and n not in known}


def _one_per_image(
    columns: CsvColumns, rows: pd.DataFrame, cells: Mapping[str, pd.Series]
) -> pd.DataFrame:
    """What rows say of each image, NaN being nothing; refuses those that contradict an earlier."""
    for name, cell in cells.items():
        said = pd.Series(np.arange(len(rows))).where(rows[name].notna())
        first = said.groupby(rows["image"]).transform("first").fillna(0).to_numpy(int)
        columns.refuse(
            rows[name].notna() & (rows[name] != rows[name].to_numpy()[first]),
            str(cell.name),
            "got '{}', but line {} has '{}' for the same image; correct or remove one of them "
            "(of a row for each finding: --findings).",
            cell.to_numpy(),
            columns.cells.index[first],
            cell.to_numpy()[first],
        )
    return rows.groupby("image", sort=False).first().reset_index()


def _image(text: str) -> str:
    path = PurePosixPath(text.replace("\\", "/"))
    if not path.parts or path.is_absolute() or ".." in path.parts or re.match("[A-Za-z]:", text):
        raise ValueError(
            f"needs the path of a file below the images folder; got '{text}'. Name the folder that "
            "it leads into (--images), or write what follows it alone."
        )
    return str(path)


def plain(patient: str) -> str:
    """An id without leading zeros and without the ".0" that a spreadsheet adds to a number."""
    number = re.fullmatch(r"([0-9]+)\.0+", patient)
    return (number[1] if number else patient).lstrip("0") or "0"


def one_spelling(table: pd.DataFrame) -> pd.DataFrame:
    """Give a patient with several spellings, such as 7, 0007 and 7.0, the shortest of them.

    Returns:
        The label table; its `attrs["notes"]` say how many patients that are, and how many ids
        differ from another in case alone, which stay as they are.
    """
    ids = pd.Series(sorted(table["patient"].unique(), key=lambda patient: (len(patient), patient)))
    plains = ids.map(plain)
    shortest = ids.groupby(plains).transform("first")
    notes = list(table.attrs.get("notes", []))
    several = ids[plains.duplicated(keep=False)]
    if len(several):
        first = ", ".join(several[plains == plain(several.iloc[0])])
        notes.append(
            f"{plains[several.index].nunique():,} patients are written in several ways ({first}), "
            "and count as one each; 'patients: exact' keeps them apart (--patients exact)"
        )
    folded = plains.drop_duplicates().str.casefold()
    alike = ids[folded.index][folded.duplicated(keep=False)]
    if len(alike):
        pair = ", ".join(alike[folded == folded[alike.index[0]]])
        notes.append(
            f"{len(alike):,} patient ids differ from another in case alone ({pair}), and count as "
            "different patients"
        )
    table = table.assign(patient=table["patient"].map(dict(zip(ids, shortest, strict=True))))
    table.attrs["notes"] = notes
    return table
