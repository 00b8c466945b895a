r"""Read named columns of a csv as text and decode them, so that every error names its cell.

Every line must have as many cells as the header, a name stands once in it, and cells stay text, so
that no patient number is rounded.
"""

import io
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cxr_study.common.errors import InputError
from cxr_study.common.spelling import nearest
from cxr_study.data.labels.csv_file import CsvFile, faults, open_csv

_SAMPLE = 1000  # rows


@dataclass(frozen=True, eq=False)
class CsvColumns:
    """Some columns of a csv; `columns["Edema"]` is the text of its cells, stripped, by line.

    Attributes:
        path: The csv.
        lines: Line in the file of each row (header: 1), shape (rows,).
        codes: Column -> for each row, which of the texts its cell has, shape (rows,).
        texts: Column -> its texts, stripped; one may stand there twice.
    """

    path: Path
    lines: np.ndarray
    codes: Mapping[str, np.ndarray]
    texts: Mapping[str, np.ndarray]

    def __getitem__(self, column: str) -> pd.Series:
        cells = self.texts[column][self.codes[column]]
        return pd.Series(cells, pd.Index(self.lines, name="line"), dtype=object, name=column)

    def refuse(
        self,
        wrong: np.ndarray | pd.Series,
        column: str,
        message: str,
        *values: Sequence[object] | np.ndarray,
    ) -> None:
        """Refuse the rows that are wrong.

        Args:
            wrong: bool, shape (rows,).
            column: The column to name.
            message: What is wrong and what to do, with a {} for each of `values`.
            values: Shape (rows,) each.

        Raises:
            InputError: A row is wrong; names the first ones and counts all.
        """
        rows: list[int] = np.flatnonzero(np.asarray(wrong)).tolist()
        if rows:
            raise faults(
                self.path,
                [
                    (self._place(row, column), message.format(*(value[row] for value in values)), 1)
                    for row in rows
                ],
            )

    def decode(self, column: str, meaning: Callable[[str], object]) -> np.ndarray:
        """Decode one column, see `decode_all`."""
        return self.decode_all({column: meaning})[column]

    def decode_all(self, meanings: Mapping[str, Callable[[str], object]]) -> dict[str, np.ndarray]:
        """Turn the texts of columns into values, shape (rows,), or (rows, values) for tuples.

        Args:
            meanings: Column -> its meaning: text -> number, text or tuple of either; called once
                per text. Its ValueError says what the cell needs.

        Raises:
            InputError: Cells have no meaning; names line and column where each such text stands
                first, and counts them all.
        """
        decoded: dict[str, np.ndarray] = {}
        wrong: dict[tuple[str, str], np.ndarray] = {}  # column and what is wrong -> rows
        for column, meaning in meanings.items():
            codes, values = self.codes[column], []
            for code, text in enumerate(self.texts[column]):
                try:
                    values.append(meaning(text))
                except ValueError as error:
                    rows = np.flatnonzero(codes == code)
                    wrong[column, str(error)] = np.append(
                        wrong.get((column, str(error)), np.array([], int)), rows
                    )
            if not wrong:
                # Texts stay Python's own: an array of them takes the longest one's room per row.
                first = values[0][0] if isinstance(values[0], tuple) else values[0]
                kind = object if isinstance(first, str) else None
                decoded[column] = np.array(values, dtype=kind)[codes]
        if wrong:
            first = sorted(wrong.items(), key=lambda fault: fault[1][0])
            raise faults(
                self.path,
                [(self._place(rows[0], column), what, len(rows)) for (column, what), rows in first],
            )
        return decoded

    def match(self, column: str, pattern: str, need: str) -> list[np.ndarray]:
        """What the groups of a pattern, of which there are two or more, find in a column.

        Args:
            column: Its cells must match the pattern as a whole.
            pattern: A regular expression.
            need: What a cell needs, for the error.

        Returns:
            For each group its texts, shape (rows,).

        Raises:
            InputError: Cells do not match; see `decode_all`.
        """
        return list(self.decode(column, lambda text: matching(pattern, text, need).groups()).T)

    def require_unique(self, column: str, names: np.ndarray | None = None) -> None:
        """Refuse a column in which a text stands twice.

        Args:
            column: Its name.
            names: What identifies each row, shape (rows,). Default: the cells.
        """
        named = self[column] if names is None else pd.Series(names, self.lines, dtype=object)
        again = named.duplicated()
        if again.any():
            first = pd.Series(named[~again].index, index=named[~again])
            message = "'{}' stands in line {} already; remove one of them."
            self.refuse(again, column, message, named.to_numpy(), first[named].to_numpy())

    def _place(self, row: int, column: str) -> str:
        return f"line {self.lines[row]}, column '{column}'"


def matching(pattern: str, text: str, need: str) -> re.Match[str]:
    """Match the whole text, or say that it needs `need`."""
    found = re.fullmatch(pattern, text)
    if found is None:
        raise ValueError(f"needs {need}; got '{text}'.")
    return found


def read_columns(
    csv: Path | CsvFile,
    wanted: Sequence[str | tuple[str, ...]],
    *,
    comments: bool = False,
    several_lines: Collection[str] = (),
) -> CsvColumns:
    """Read the named columns of a csv (or .csv.gz); other columns and blank lines are ignored.

    Args:
        csv: The file, or one that is open already.
        wanted: Column names; a tuple holds alternative spellings, the first names the result.
        comments: See `open_csv`, of a file that is not open.
        several_lines: Columns whose cells may have line breaks in quotes.

    Raises:
        InputError: The file cannot be read or has no rows, a column is missing or stands there
            twice, a line has not as many cells as the header, or a cell has several lines.
    """
    spellings = [(name,) if isinstance(name, str) else name for name in wanted]
    file = csv if isinstance(csv, CsvFile) else open_csv(csv, comments=comments)
    where = {names[0]: _position(file, names) for names in spellings}
    plain = file.is_plain()
    lines = None if plain else file.lines()  # which refuses what is no csv
    codes, texts = _cells(file, where)
    if plain and all("" in found for found in texts.values()):
        lines = file.lines()  # a row may be blank
    number = len(next(iter(codes.values())))
    if lines is None:
        lines = np.arange(file.line + 1, file.line + 1 + number)
    elif len(lines) == number:
        for name, found in codes.items():
            used, codes[name] = np.unique(found[lines > 0], return_inverse=True)
            texts[name] = texts[name][used]
        lines = lines[lines > 0]
    else:
        raise InputError(f"{file.path} cannot be read as csv; is there a quote too many?")
    if not len(lines):
        raise InputError(f"{file.path} has a header but no rows; needs one line per row.")
    columns = CsvColumns(file.path, lines, codes, texts)
    if not plain:
        columns.decode_all({name: _one_line for name in where if name not in several_lines})
    return columns


def _cells(
    file: CsvFile, where: Mapping[str, int]
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Codes and texts of some columns, see `CsvColumns`, of all rows below the header."""
    options: dict[str, Any] = {
        "sep": file.separator,
        "header": None,
        "names": range(len(file.header)),
        "usecols": sorted(set(where.values())),
        "na_filter": False,
        "skip_blank_lines": False,
        "encoding": "utf-8",
    }
    first = pd.read_csv(io.BytesIO(file.text), dtype=object, nrows=_SAMPLE, **options)
    # Where few texts fill many cells, the parser finds them faster than anybody after it; where
    # nearly every text is another, nobody needs to look for equal ones.
    kinds = {at: "category" if first[at].nunique() < len(first) / 2 else object for at in first}
    whole = pd.read_csv(io.BytesIO(file.text), dtype=kinds, **options)[1:]
    codes, texts = {}, {}
    for name, at in where.items():
        if kinds[at] is object:
            codes[name], different = np.arange(len(whole)), whole[at].to_numpy()
        else:
            codes[name], different = pd.factorize(whole[at])
        texts[name] = np.array([text.strip() for text in different], dtype=object)
    return codes, texts


def _one_line(text: str) -> str:
    if len(text.splitlines()) > 1:
        raise ValueError("the cell has several lines; a quote too many?")
    return text


def _position(file: CsvFile, names: tuple[str, ...]) -> int:
    place = f"{file.path}, line {file.line}"
    found = [position for position, name in enumerate(file.header) if name in names]
    if len(found) == 1:
        return found[0]
    spelt = " or ".join(f"'{name}'" for name in names)
    if found:
        raise InputError(
            f"{place}: needs one column {spelt}; {len(found)} have that name. Remove the others."
        )
    raise InputError(
        f"{place}: needs a column {spelt}; {nearest(names[0], file.header)}. Is this the "
        "dataset's official csv?"
    )
