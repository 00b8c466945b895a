r"""Read named columns of a csv as text and decode them, so that every error names its cell.

Nothing is guessed: every line must have as many cells as the header, a name stands once in it, and
cells stay text, so that no patient number is rounded. Commas, UTF-8 with or without a byte order
mark, `\n` or `\r\n`.
"""

import csv
import gzip
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import IO

import numpy as np
import pandas as pd

from cxr_study.common.spelling import nearest


class TableError(ValueError):
    """A csv does not hold what its format promises."""


def open_csv(path: Path) -> IO[str]:
    """Open a `.csv` or `.csv.gz` as text, skipping the byte order mark some programs write."""
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return path.open("rt", encoding="utf-8-sig", newline="")


@dataclass(frozen=True)
class CsvColumns:
    """Some columns of a csv.

    Attributes:
        path: The csv.
        cells: Text of the cells, stripped; the index is the line in the file (header: 1).
    """

    path: Path
    cells: pd.DataFrame

    def error(self, line: int, column: str, message: str) -> TableError:
        """Error about one cell."""
        return TableError(f"{self.path}, line {line}, column '{column}': {message}")

    def refuse(
        self,
        wrong: np.ndarray | pd.Series,
        column: str,
        message: str,
        *values: Sequence[object] | np.ndarray,
    ) -> None:
        """Refuse the first row that is wrong.

        Args:
            wrong: bool, shape (rows,).
            column: The column to name.
            message: What is wrong and what to do, with a {} for each of `values`.
            values: Shape (rows,) each.
        """
        if np.any(wrong):
            row = int(np.argmax(wrong))
            text = message.format(*(value[row] for value in values))
            raise self.error(self.cells.index[row], column, text)

    def decode(self, column: str, meaning: Callable[[str], object]) -> np.ndarray:
        """Turn the text of a column into values, shape (rows,), or (rows, values) for tuples.

        Args:
            column: Name of the column.
            meaning: Text -> number, text or tuple of numbers; called once per distinct text. Its
                ValueError becomes a TableError with file, line and column.
        """
        codes, texts = pd.factorize(self.cells[column])
        values = []
        for code, text in enumerate(texts):
            try:
                values.append(meaning(text))
            except ValueError as error:
                line = self.cells.index[int(np.argmax(codes == code))]
                raise self.error(line, column, str(error)) from None
        # Texts stay Python's own strings: an array of them takes the longest one's room per row.
        kind = object if isinstance(values[0], str) else None
        return np.array(values, dtype=kind)[codes]

    def require_unique(self, column: str, named: Callable[[str], object] = str) -> None:
        """Refuse a column in which a text stands twice, or two that `named` maps to the same."""
        names, lines = self.decode(column, named), self.cells.index
        again = pd.Series(names).duplicated()
        if again.any():
            name = names[again.idxmax()]
            message = (
                f"'{name}' stands in line {lines[names == name][0]} already; remove one of them."
            )
            raise self.error(lines[again.idxmax()], column, message)


def read_header(path: Path) -> list[str]:
    """Names of all columns of a csv, stripped.

    Raises:
        TableError: The file cannot be read or is empty.
    """
    return _header(path, _lines(path))[1]


def read_columns(
    path: Path, wanted: Sequence[str | tuple[str, ...]], *, comments: bool = False
) -> CsvColumns:
    """Read the named columns of a csv (or .csv.gz); other columns and blank lines are ignored.

    Args:
        path: The csv.
        wanted: Column names; a tuple holds alternative spellings, the first names the result.
        comments: Whether lines before the header that begin with "#" are skipped.

    Raises:
        TableError: The file cannot be read or has no rows, a column is missing or stands there
            twice, or a line has not as many cells as the header.
    """
    spellings = [(name,) if isinstance(name, str) else name for name in wanted]
    lines = _lines(path)
    at, header = _header(path, lines, comments)
    where = [_position(f"{path}, line {at}", header, names) for names in spellings]
    select = itemgetter(*where, where[0])  # once more, because of one column it makes no tuple
    rows: list[tuple[str, ...]] = []
    numbers: list[int] = []
    for number, row in lines:
        if len(row) != len(header):
            raise TableError(
                f"{path}, line {number}: the line has {len(row)} cells, the header {len(header)}; "
                "is the file cut off, or a comma in a cell without quotes around it?"
            )
        rows.append(select(row))
        numbers.append(number)
    if not rows:
        raise TableError(f"{path} has a header but no rows; needs one line per row.")
    texts = {
        names[0]: [text.strip() for text in column]
        for names, column in zip(spellings, zip(*rows, strict=True), strict=False)
    }
    columns = CsvColumns(path, pd.DataFrame(texts, index=pd.Index(numbers, name="line")))
    for name, column in texts.items():
        if len("".join(column).splitlines()) > 1:  # one test for all cells is quick
            wrong = np.array([len(text.splitlines()) > 1 for text in column])
            columns.refuse(wrong, name, "the cell has several lines; a quote too many?")
    return columns


def _lines(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Line number (where it begins) and cells of every line that is not blank."""
    number = 0
    try:
        with open_csv(path) as file:
            reader = csv.reader(file, strict=True)
            for row in reader:
                text = "".join(row)
                if "\0" in text:
                    raise TableError(f"{path}, line {number + 1}: a NUL byte; is the file damaged?")
                if text and not text.isspace():
                    yield number + 1, row
                number = reader.line_num
    except csv.Error as error:
        where = f"{path}, line {number + 1}"
        raise TableError(f"{where}: cannot be read as csv: {error}; a quote too many?") from error
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise TableError(f"{path} cannot be read as csv in UTF-8: {error}.") from error


def _header(
    path: Path, lines: Iterator[tuple[int, list[str]]], comments: bool = False
) -> tuple[int, list[str]]:
    for number, row in lines:
        if not (comments and row[0].startswith("#")):
            return number, [name.strip() for name in row]
    raise TableError(f"{path} is empty; needs a header line and one line per row.")


def _position(place: str, header: list[str], names: tuple[str, ...]) -> int:
    found = [position for position, name in enumerate(header) if name in names]
    if len(found) == 1:
        return found[0]
    spelt = " or ".join(f"'{name}'" for name in names)
    if found:
        raise TableError(
            f"{place}: needs one column {spelt}; {len(found)} have that name. Remove the others."
        )
    raise TableError(
        f"{place}: needs a column {spelt}; {nearest(names[0], header)}. Is this the "
        "dataset's official csv, with commas between the cells?"
    )
