"""A hospital's own csv.

    image,patient,view,sex,age,Cardiomegaly,Pneumonia
    p1/1.png,17,PA,F,63,1,0
    p1/2.png,17,lateral,F,63,,-1

`image` (or `path`) and `patient` are needed; `view`, `sex` and `age` may be left out; every other
column is a class. A site file may say what a table calls these columns, what its words mean, and
which column lists findings where there is none for each class.
"""

import re
from collections.abc import Callable, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pandas as pd

from cxr_study.common.spelling import key, nearest
from cxr_study.data.images.image_files import below
from cxr_study.data.labels.csv_columns import CsvColumns, read_columns
from cxr_study.data.labels.csv_file import TableError, open_csv
from cxr_study.data.labels.label_table import LOADED, POSITIVE, VIEWS, assemble
from cxr_study.data.readers import cell_values
from cxr_study.data.readers import finding_lists as lists_of
from cxr_study.data.readers.table_layout import DEFAULT, IGNORED, KINDS, Findings, TableLayout

_VIEWS = {view.casefold(): view for view in VIEWS}
_SEXES = {"f": "F", "m": "M", "": ""}
_view = cell_values.one_of(f"{', '.join(VIEWS[:-1])} or a blank", _VIEWS)
_sex = cell_values.one_of("F, M or a blank", _SEXES)
_MEANINGS: dict[str, Callable[[str], Any]] = {
    "patient": cell_values.filled,
    "view": lambda text: _view(text.casefold()),
    "sex": lambda text: _sex(text.casefold()),
    "age": lambda text: cell_values.age(text.replace(",", ".")),
}


PLAIN = TableLayout()
"""Of a csv with the names and the words that the reader knows."""


def read(csv: Path, layout: TableLayout = PLAIN, images: Path | None = None) -> pd.DataFrame:
    """Read a hospital's own csv, see `read_rows`."""
    return read_rows(csv, layout, images)[0]


def read_rows(
    csv: Path, layout: TableLayout, images: Path | None = None
) -> tuple[pd.DataFrame, int]:
    """Read a hospital's own csv: one line per image, one column per class, or a list of findings.

    `image` is the path below the images folder, with the slashes of any system, or an absolute one
    that leads below `images` (default: the csv's folder); `view` is PA, AP, frontal, lateral, other
    or blank; `sex` F, M or blank; `age` years or blank; a label 1, 0, -1 (uncertain) or blank (not
    mentioned, or nobody looked: the site file says which). Rows of an image that say the same count
    once.

    Returns:
        The label table of the file's classes, in its order, or by name where they are listed; "No
        Finding" is no class. Without a column `view` all images count as frontal. And how many
        rows say what an earlier one does.
    """
    file = open_csv(csv, encoding=layout.encoding)
    column_of, names = _columns(csv, file.header, layout)
    lists = layout.findings
    listing = [] if lists is None else [c for c in (lists.column, lists.value) if c is not None]
    for name in names:
        if key(name) in LOADED:
            raise TableError(
                f"{csv}, line 1, column '{name}': no class can have this name; rename or remove it."
            )
    if not names and lists is None:
        raise TableError(
            f"{csv}, line 1: needs a column for every class; has only {', '.join(file.header)}. Or "
            "say which lists findings, in the site file (key 'findings')."
        )
    columns = read_columns(file, [*column_of.values(), *names, *listing], several_lines=listing[:1])
    words = {word.strip().casefold(): meant for word, meant in layout.words.items()}

    def translated(meaning: Callable[[str], Any]) -> Callable[[str], Any]:
        return lambda text: meaning(words.get(text.casefold(), text))

    known = _MEANINGS | {"image": lambda text: _image(below(images or csv.parent, text))}
    meanings = {
        column: known[what] if what in ("image", "patient") else translated(known[what])
        for what, column in column_of.items()
    }
    for name in (*names, *listing[1:]):
        meanings[name] = translated(cell_values.label_from(layout.threshold(name)))
    if lists is not None:
        meanings[lists.column] = lists_of.meaning(lists.separator, words)
    values = columns.decode_all(meanings)
    again = pd.DataFrame(values).duplicated().to_numpy()
    columns, values = columns.rows(~again), {name: of[~again] for name, of in values.items()}
    image, _ = pd.factorize(values[column_of["image"]])
    _require_alike(columns, [*column_of.values(), *names], values, image)
    first = np.unique(image, return_index=True)[1]
    labels = {class_name: values[column][first] for column, class_name in names.items()}
    if lists is not None:
        labels = _listed(columns, lists, values, image)
    described: dict[str, Any] = {what: values[name][first] for what, name in column_of.items()}
    return assemble(labels, **{"view": "frontal"} | described), int(again.sum())


def _columns(
    csv: Path, header: Sequence[str], layout: TableLayout
) -> tuple[dict[str, str], dict[str, str]]:
    """Columns of what describes an image, by what they are, and class names by their columns."""
    lists = layout.findings
    used = {"columns": layout.columns, "threshold": {*layout.thresholds} - {DEFAULT}}
    if lists is not None:
        used["findings"] = [name for name in (lists.column, lists.value) if name is not None]
    for of, given in used.items():
        for name in given:
            if name not in header:
                raise TableError(
                    f"{csv}, line 1: key '{of}' of the site file needs names of columns; got "
                    f"'{name}', {nearest(name, header)}."
                )
    described = {name: what for name, what in layout.columns.items() if what != IGNORED}
    for what in KINDS:
        spellings = ("image", "path") if what == "image" else (what,)
        if what not in described.values():
            described |= {n: what for n in spellings if n in header and n not in layout.columns}
    column_of: dict[str, str] = {}
    for name, what in described.items():
        if what in column_of:
            raise TableError(
                f"{csv}, line 1: needs one column {what}; '{column_of[what]}' and '{name}' are. "
                "Say of one that it is ignored, in the site file (key 'columns')."
            )
        column_of[what] = name
    for what in ("image", "patient"):
        if what not in column_of:
            spelt = "'image' or 'path'" if what == "image" else f"'{what}'"
            raise TableError(
                f"{csv}, line 1: needs a column {spelt}; {nearest(what, header)}. If it has "
                f"another name, say which in the site file: columns: {{<name>: {what}}}"
            )
    if lists is not None:
        return column_of, {}
    known = dict.fromkeys((*KINDS, "path", *described, *layout.columns))
    return column_of, cell_values.class_columns(csv, header, known, "table")


def _require_alike(
    columns: CsvColumns, names: Sequence[str], values: dict[str, np.ndarray], image: np.ndarray
) -> None:
    """Refuse rows of an image that say something else than its first one."""
    first = np.unique(image, return_index=True)[1][image]
    for name in names:
        cells, of = columns[name].to_numpy(), pd.Series(values[name])
        other = pd.Series(of.to_numpy()[first])
        columns.refuse(
            (of != other) & (of.notna() | other.notna()),
            name,
            "got '{}', but line {} has '{}' for the same image; correct or remove one of them.",
            cells,
            columns.lines[first],
            cells[first],
        )


def _listed(
    columns: CsvColumns, lists: Findings, values: dict[str, np.ndarray], image: np.ndarray
) -> dict[str, np.ndarray]:
    """Class -> its labels, of each image."""
    named, label, cells = values[lists.column], np.full(len(image), POSITIVE), columns[lists.column]
    if lists.value is not None:
        label, cells = values[lists.value], cells + " = " + columns[lists.value]
    rows = lists_of.rows(image, named, label)
    other = lists_of.contradicted(rows)
    columns.refuse(
        other >= 0,
        lists.column,
        "'{}' contradicts '{}' in line {}, of the same image; correct or remove one of them.",
        cells.to_numpy(),
        cells.to_numpy()[other],
        columns.lines[other],
    )
    labels = lists_of.labels(rows, lists.unlisted)
    if not labels:
        raise TableError(f"{columns.path}, column '{lists.column}': no row names a finding.")
    return labels


def _image(text: str) -> str:
    path = PurePosixPath(text.replace("\\", "/"))
    if not path.parts or path.is_absolute() or ".." in path.parts or re.match("[A-Za-z]:", text):
        raise ValueError(f"needs the path of a file below the images folder; got '{text}'.")
    return str(path)
