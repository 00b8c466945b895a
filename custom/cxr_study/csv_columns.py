"""Read named columns of a csv as text and decode them, so that every error names its cell."""

import csv
import gzip
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import IO

import numpy as np
import pandas as pd

from cxr_study.vocabulary import nearest


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
        cells: Text of the cells without surrounding blanks; the index is the line in the file
            (the header is line 1).
    """

    path: Path
    cells: pd.DataFrame

    def error(self, line: int, column: str, message: str) -> TableError:
        """Return the error that says what is wrong with one cell."""
        return TableError(f"{self.path}, line {line}, column '{column}': {message}")

    def decode(self, column: str, meaning: Callable[[str], object]) -> np.ndarray:
        """Turn the text of a column into values.

        Args:
            column: Name of the column.
            meaning: Value of one text, a number, a text or a tuple of numbers; called once for
                each distinct text. Raises ValueError for a text without meaning.

        Returns:
            Array of shape (rows,), or (rows, values) where `meaning` returns tuples.

        Raises:
            TableError: With file, line and column in front of what `meaning` said.
        """
        codes, texts = pd.factorize(self.cells[column])
        values = []
        for code, text in enumerate(texts):
            try:
                values.append(meaning(text))
            except ValueError as error:
                line = self.cells.index[int(np.argmax(codes == code))]
                raise self.error(line, column, str(error)) from None
        return np.array(values)[codes]

    def require_unique(self, column: str) -> None:
        """Refuse a column in which a text stands twice.

        Raises:
            TableError: At the second of the two lines.
        """
        again = self.cells[column].duplicated()
        if again.any():
            second = int(np.argmax(again))
            text = self.cells[column].iloc[second]
            first = int(np.argmax(self.cells[column] == text))
            raise self.error(
                self.cells.index[second],
                column,
                f"'{text}' stands in line {self.cells.index[first]} already; remove one of them.",
            )


def read_columns(path: Path, wanted: Sequence[str | tuple[str, ...]]) -> CsvColumns:
    """Read the named columns of a csv; other columns, and blank lines, are ignored.

    Args:
        path: `.csv` or `.csv.gz` in UTF-8 with a header line.
        wanted: Column names; a tuple holds the spellings in use, and its first names the result.

    Returns:
        The columns in the order of `wanted`, at least one row.

    Raises:
        TableError: The file cannot be read, is empty, or lacks a column or a cell.
    """
    spellings = [(name,) if isinstance(name, str) else name for name in wanted]
    rows: list[tuple[str, ...]] = []
    lines: list[int] = []
    try:
        with open_csv(path) as file:
            reader = csv.reader(file)
            header = [name.strip() for name in next(reader, [])]
            if not header:
                raise TableError(f"{path} is empty; needs a header line and one line per row.")
            where = [_position(path, header, names) for names in spellings]
            select, last = itemgetter(*where, where[0]), max(where)
            for row in reader:
                if not row:
                    continue
                if len(row) <= last:
                    raise TableError(
                        f"{path}, line {reader.line_num}, column '{header[last]}': the line ends "
                        f"after {len(row)} of {len(header)} cells; is the file cut off?"
                    )
                rows.append(select(row))
                lines.append(reader.line_num)
    except (OSError, EOFError, UnicodeDecodeError, csv.Error) as error:
        raise TableError(f"{path} cannot be read as csv: {error}.") from error
    if not rows:
        raise TableError(f"{path} has a header but no rows; needs one line per row.")
    columns = zip(*rows, strict=True)
    texts = {
        names[0]: [text.strip() for text in column]
        for names, column in zip(spellings, columns, strict=False)
    }
    return CsvColumns(path, pd.DataFrame(texts, index=pd.Index(lines, name="line")))


def _position(path: Path, header: list[str], names: tuple[str, ...]) -> int:
    for name in names:
        if name in header:
            return header.index(name)
    spelt = " or ".join(f"'{name}'" for name in names)
    raise TableError(
        f"{path}, line 1: needs a column {spelt}; "
        f"{nearest(names[0], tuple(header))}. Is this the dataset's official csv?"
    )
