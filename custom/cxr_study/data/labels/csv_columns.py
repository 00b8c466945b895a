"""Read named columns of a csv as text and decode them, so that every error names its cell.

Commas, semicolons or tabs between the cells; UTF-8, UTF-16 with its mark, or an encoding that is
named; perhaps gzipped. Nothing is guessed: where a file can be taken in two ways it is refused.
Every line must have as many cells as the header, a name stands once in it, and cells stay text, so
that no patient number is rounded.
"""

import codecs
import csv
import gzip
import io
import re
import sys
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path

import numpy as np
import pandas as pd

from cxr_study.common.errors import InputError
from cxr_study.common.spelling import nearest

__all__ = ["read_columns"]

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs"}
MOST_SHOWN = 20
"""Faults of one file that an error lists; it counts them all."""

Fault = tuple[int, str | None, str, int]
"""Line, column (None: the whole line), what is wrong, and how often."""

_WORKBOOKS = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")  # xlsx and ods; xls
_LOOKED_AT = 100  # lines that tell two separators apart


@dataclass(frozen=True)
class CsvFile:
    """A csv, opened.

    Attributes:
        path: Of the file.
        text: From the header on, UTF-8.
        line: Line of the header; 1 without comments before it.
        separator: One of `SEPARATORS`.
    """

    path: Path
    text: bytes
    line: int
    separator: str

    @cached_property
    def header(self) -> list[str]:
        """Names of the columns, stripped."""
        return [name.strip() for name in next(self.rows())[1]]

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """Line where each row begins, the header first, and its cells."""
        number = self.line
        text = io.TextIOWrapper(io.BytesIO(self.text), encoding="utf-8", newline="")
        reader = csv.reader(text, strict=True, delimiter=self.separator)
        try:
            for row in reader:
                yield number, row
                number = self.line + reader.line_num
        except csv.Error as error:
            raise InputError(
                f"{self.path}, line {number}: cannot be read as csv: {error}; a quote too many?"
            ) from error


@dataclass(frozen=True, eq=False)
class CsvColumns:
    """Some columns of a csv; `columns["Edema"]` is the text of its cells, stripped, by line.

    Attributes:
        path: The csv.
        cells: The columns; the index is the line in the file of each row (header: 1).
    """

    path: Path
    cells: pd.DataFrame

    def __getitem__(self, column: str) -> pd.Series:
        return self.cells[column]

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
        lines = self.cells.index
        rows: list[int] = np.flatnonzero(np.asarray(wrong)).tolist()
        texts = (message.format(*(value[row] for value in values)) for row in rows)
        if found := [(lines[row], column, text, 1) for row, text in zip(rows, texts, strict=True)]:
            raise faults(self.path, found)

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
        found: list[Fault] = []
        for column, meaning in meanings.items():
            codes, texts = pd.factorize(self.cells[column])
            values, odd = [], {}
            for text in texts:
                try:
                    values.append(meaning(text))
                except ValueError as error:
                    odd[text] = str(error)
            wrong = self.cells[column].map(odd).dropna()
            for what, lines in wrong.groupby(wrong).groups.items():
                found.append((lines[0], column, str(what), len(lines)))
            if not found:
                # Texts stay Python's own: an array of them takes the longest one's room per row.
                first = values[0][0] if isinstance(values[0], tuple) else values[0]
                kind = object if isinstance(first, str) else None
                decoded[column] = np.array(values, dtype=kind)[codes]
        if found:
            raise faults(self.path, sorted(found, key=lambda fault: fault[0]))
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
        named = self[column] if names is None else pd.Series(names, self.cells.index, dtype=object)
        again = named.duplicated()
        if again.any():
            first = pd.Series(named[~again].index, index=named[~again])
            message = "'{}' stands in line {} already; remove one of them."
            self.refuse(again, column, message, named.to_numpy(), first[named].to_numpy())


def matching(pattern: str, text: str, need: str) -> re.Match[str]:
    """Match the whole text, or say that it needs `need`."""
    found = re.fullmatch(pattern, text)
    if found is None:
        raise ValueError(f"needs {need}; got '{text}'.")
    return found


def open_csv(path: Path, *, encoding: str | None = None, comments: bool = False) -> CsvFile:
    """Open a `.csv` or `.csv.gz`.

    Args:
        path: The file.
        encoding: Of a file that is neither UTF-8 nor begins with a mark, such as cp1252.
        comments: Whether lines before the header that begin with "#" are skipped.

    Raises:
        InputError: The file cannot be read, is empty or in another encoding, or what separates its
            cells cannot be told.
    """
    text = _utf8(path, encoding)
    before, nul, _ = text.partition(b"\0")
    if nul:
        number = before.count(b"\n") + 1
        raise InputError(
            f"{path}, line {number}: a NUL byte; is the file damaged, or in UTF-16 without its "
            "mark? Save it as UTF-8."
        )
    start, line, separator = 0, 1, None
    if said := re.match(rb'"?sep=([,;\t])"?\r?\n', text, re.IGNORECASE):  # as Excel writes it
        text, line, separator = text[said.end() :], 2, said[1].decode()
    for each in text.splitlines(keepends=True) if comments or text[:1].isspace() else ():
        if each.strip(b" \t\r\n,;") and not (comments and each.startswith(b"#")):
            break
        start, line = start + len(each), line + 1
    text = text[start:]
    if not text or text.isspace():
        raise InputError(f"{path} is empty; needs a header line and one line per row.")
    return CsvFile(path, text, line, separator or _separator(path, line, text))


def read_columns(
    csv: Path | CsvFile,
    wanted: Sequence[str | tuple[str, ...]],
    *,
    several_lines: Collection[str] = (),
) -> CsvColumns:
    """Read the named columns of a csv (or .csv.gz); other columns and blank lines are ignored.

    Args:
        csv: The file, or one that is open already.
        wanted: Column names; a tuple holds alternative spellings, the first names the result.
        several_lines: Columns whose cells may have line breaks in quotes.

    Raises:
        InputError: The file cannot be read or has no rows, a column is missing or stands there
            twice, a line has not as many cells as the header, or a cell has several lines.
    """
    file = csv if isinstance(csv, CsvFile) else open_csv(csv)
    spellings = [(name,) if isinstance(name, str) else name for name in wanted]
    where = {names[0]: _position(file, names) for names in spellings}
    cells: dict[str, list[str]] = {name: [] for name in where}
    lines: list[int] = []
    wrong: list[Fault] = []
    for line, row in islice(file.rows(), 1, None):
        whole = "".join(row)
        if not whole.strip():
            continue
        if len(row) != len(file.header):
            what = (
                f"the line has {len(row)} cells, the header {len(file.header)}; is the file cut "
                f"off, or one of its {SEPARATORS[file.separator]} in a cell without quotes around "
                "it?"
            )
            wrong.append((line, None, what, 1))
            continue
        lines.append(line)
        for name, at in where.items():
            cells[name].append(sys.intern(row[at].strip()))  # most columns have few texts
        if len(whole.splitlines()) > 1:
            what = "the cell has several lines; a quote too many?"
            plain = [name for name in where if name not in several_lines]
            odd = [name for name in plain if len(cells[name][-1].splitlines()) > 1]
            wrong += [(line, name, what, 1) for name in odd]
    if wrong:
        raise faults(file.path, wrong)
    if not lines:
        raise InputError(f"{file.path} has a header but no rows; needs one line per row.")
    table = pd.DataFrame(cells, pd.Index(lines, name="line"), dtype=object)
    return CsvColumns(file.path, table)


def faults(path: Path, found: Sequence[Fault]) -> InputError:
    """Error about the faults of a csv: the first in full, then the others, a line each."""
    total = sum(number for *_, number in found)
    listed = []
    for line, column, what, number in found[:MOST_SHOWN]:
        place = f"line {line}" if column is None else f"line {line}, column '{column}'"
        listed.append((f"{place}: {what}", f" ({number:,} times)" if number > 1 else ""))
    first = f"{path}, {listed[0][0]}"
    if total == 1:
        return InputError(first)
    lines = [first, f"In all {total:,} faults:", *(f"  {text}{times}" for text, times in listed)]
    if len(found) > MOST_SHOWN:
        lines.append(f"  and {sum(number for *_, number in found[MOST_SHOWN:]):,} more")
    return InputError("\n".join(lines))


def _utf8(path: Path, encoding: str | None) -> bytes:
    """The bytes of a file, in UTF-8 without a mark."""
    try:
        raw = path.read_bytes()
        raw = gzip.decompress(raw) if path.suffix == ".gz" else raw
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path} cannot be read as csv: {error}.") from error
    if raw.startswith(_WORKBOOKS):
        raise InputError(f"{path} is a workbook, no csv; save the sheet as 'CSV UTF-8'.")
    if raw.startswith(codecs.BOM_UTF8):
        raw, encoding = raw.removeprefix(codecs.BOM_UTF8), None
    elif raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        encoding = "utf-16"
    if encoding is not None and re.match("utf.?(16|32)", encoding.lower()) and b"\0" not in raw:
        raise InputError(f"{path} is not in {encoding}; leave --encoding out, or name another.")
    try:
        text = raw.decode(encoding or "utf-8")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        word = re.findall(rb"[^\s,;]*$", raw[: error.start])[0] + raw[error.start : error.end]
        shown = word.decode("cp1252", "replace")
        raise InputError(
            f"{path} cannot be read as csv in {encoding or 'UTF-8'}: line {line} has the byte "
            f"0x{raw[error.start]:02x}, which in cp1252 would end '{shown}'. Save it as UTF-8, "
            "or name the encoding of a hospital's own table: --encoding cp1252 (site file: "
            "encoding: cp1252)."
        ) from error
    return raw if encoding is None else text.encode()


def _separator(path: Path, line: int, text: bytes) -> str:
    """What separates the cells: what the header has, or what cuts the first lines alike."""
    first = [row.decode() for row in islice(io.BytesIO(text), _LOOKED_AT)]
    outside = re.sub(r'"[^"]*"', "", "".join(first)).splitlines()  # a cell may have several lines
    found = [mark for mark in SEPARATORS if mark in outside[0]]
    if len(found) > 1:
        rows = [each for each in outside if each.strip()]
        alike = [mark for mark in found if len({each.count(mark) for each in rows}) == 1]
        found = alike or found
    if len(found) > 1:
        several = " and ".join(SEPARATORS[mark] for mark in found)
        raise InputError(
            f"{path}, line {line}: the header has {several}; which of them stand between cells "
            "cannot be told. Save the file with one of them, and names that hold another in quotes."
        )
    return found[0] if found else ","


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
