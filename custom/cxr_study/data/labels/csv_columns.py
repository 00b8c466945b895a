"""Read named columns of a csv as text and decode them; errors name line and column.

Cells are separated by commas, semicolons or tabs. The encoding is UTF-8, UTF-16 with a byte order
mark, or one that is given; the file may be gzipped. Nothing is guessed: an ambiguous file is
refused. Every line needs as many cells as the header, and a wanted column must be unique. Cells
stay text until they are decoded, so that no patient number is rounded.
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
"""Separator -> its name in messages."""
MOST_SHOWN = 20
"""Number of faults of a file that an error lists; it counts all of them."""

Fault = tuple[int, str | None, str, int]
"""Line, column (None: the whole line), what is wrong, and the number of cells with this fault."""

_WORKBOOKS = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")  # xlsx and ods; xls
_SAMPLE = 100  # lines by which two possible separators are compared


@dataclass(frozen=True)
class CsvFile:
    """An opened csv; see `open_csv`.

    Attributes:
        path: The file.
        text: Its content from the header on, in UTF-8.
        line: Line number of the header; 1 if no comment or blank line is before it.
        separator: One of `SEPARATORS`.
        before: What is before the header, in UTF-8. Default: nothing.
    """

    path: Path
    text: bytes
    line: int
    separator: str
    before: bytes = b""

    @cached_property
    def header(self) -> list[str]:
        """Names of the columns, stripped."""
        return [name.strip() for name in next(self.rows())[1]]

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """Iterate over the rows, the header included.

        Yields:
            Number of the line where the row begins, and its cells as text, not stripped.

        Raises:
            InputError: A row is not valid csv.
        """
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
    """Some columns of a csv as text; `columns["Edema"]` is a series of stripped cells.

    Attributes:
        path: The csv.
        cells: The columns, dtype object. The index is each row's line number in the file, in which
            the header is usually line 1.
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
        """Raise an error if any rows are wrong.

        Args:
            wrong: Which rows are wrong, bool (rows,).
            column: The column to name.
            message: What is wrong and what to do, with a {} for each of `values`.
            values: Values for the message, shape (rows,) each.

        Raises:
            InputError: A row is wrong; names the first ones and counts all.
        """
        lines = self.cells.index
        rows: list[int] = np.flatnonzero(np.asarray(wrong)).tolist()
        texts = (message.format(*(value[row] for value in values)) for row in rows)
        if found := [(lines[row], column, text, 1) for row, text in zip(rows, texts, strict=True)]:
            raise faults_error(self.path, found)

    def decode(self, column: str, parser: Callable[[str], object]) -> np.ndarray:
        """Decode one column, see `decode_all`.

        Args:
            column: Its name.
            parser: Text of a cell -> value.
        """
        return self.decode_all({column: parser})[column]

    def decode_all(self, parsers: Mapping[str, Callable[[str], object]]) -> dict[str, np.ndarray]:
        """Convert the cells of columns into values.

        Args:
            parsers: Column -> its parser, from the text of a cell to a number, a text or a tuple of
                either. It is called once for each different text. The message of its ValueError
                states what the cell needs.

        Returns:
            Column -> values, shape (rows,), or (rows, values) for tuples.

        Raises:
            InputError: A parser refuses cells; names line and column where each such text occurs
                first, and counts all cells.
        """
        decoded: dict[str, np.ndarray] = {}
        found: list[Fault] = []
        for column, parser in parsers.items():
            codes, texts = pd.factorize(self.cells[column])
            values, odd = [], {}
            for text in texts:
                try:
                    values.append(parser(text))
                except ValueError as error:
                    odd[text] = str(error)
            wrong = self.cells[column].map(odd).dropna()
            for what, lines in wrong.groupby(wrong).groups.items():
                found.append((lines[0], column, str(what), len(lines)))
            if not found:
                # Texts are kept as objects: a text array needs the longest one's memory per row.
                first = values[0][0] if isinstance(values[0], tuple) else values[0]
                kind = object if isinstance(first, str) else None
                decoded[column] = np.array(values, dtype=kind)[codes]
        if found:
            raise faults_error(self.path, sorted(found, key=lambda fault: fault[0]))
        return decoded

    def match(self, column: str, pattern: str, need: str) -> list[np.ndarray]:
        """Match the cells of a column with a pattern.

        Args:
            column: Name of the column; its cells must match completely.
            pattern: A regular expression with two or more groups.
            need: What a cell needs, for the error.

        Returns:
            For each group its texts, shape (rows,).

        Raises:
            InputError: Cells do not match; see `decode_all`.
        """
        return list(self.decode(column, lambda text: full_match(pattern, text, need).groups()).T)

    def require_unique(self, column: str, names: np.ndarray | None = None) -> None:
        """Check that the cells of a column are unique.

        Args:
            column: Its name.
            names: Names that must be unique instead of the cells, shape (rows,). Default: the
                cells.

        Raises:
            InputError: A name is repeated; names both lines.
        """
        named = self[column] if names is None else pd.Series(names, self.cells.index, dtype=object)
        again = named.duplicated()
        if again.any():
            first = pd.Series(named[~again].index, index=named[~again])
            message = "'{}' is already in line {}; remove one of them."
            self.refuse(again, column, message, named.to_numpy(), first[named].to_numpy())


def full_match(pattern: str, text: str, need: str) -> re.Match[str]:
    """Match a whole text with a pattern.

    Args:
        pattern: A regular expression.
        text: Of a cell.
        need: What the cell needs, for the error.

    Raises:
        ValueError: It does not match.
    """
    if found := re.fullmatch(pattern, text):
        return found
    raise ValueError(f"needs {need}; got '{text}'.")


def open_csv(path: Path, *, encoding: str | None = None, comments: bool = False) -> CsvFile:
    """Open a `.csv` or `.csv.gz`, and find its encoding, header and separator.

    Args:
        path: The file. A first line "sep=;", as Excel writes it, sets the separator.
        encoding: Encoding of a file that is neither UTF-8 nor has a byte order mark, such as
            cp1252. Default: UTF-8.
        comments: Whether to skip lines before the header that begin with "#".

    Raises:
        InputError: The file cannot be read, is empty, a workbook or in another encoding, or its
            separator is ambiguous.
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
    if declared := re.match(rb'"?sep=([,;\t])"?\r?\n', text, re.IGNORECASE):  # as Excel writes it
        text, line, separator = text[declared.end() :], 2, declared[1].decode()
    for each in text.splitlines(keepends=True) if comments or text[:1].isspace() else ():
        if each.strip(b" \t\r\n,;") and not (comments and each.startswith(b"#")):
            break
        start, line = start + len(each), line + 1
    before, text = text[:start], text[start:]
    if not text or text.isspace():
        raise InputError(f"{path} is empty; needs a header line and one line per row.")
    return CsvFile(path, text, line, separator or _separator(path, line, text), before)


def read_columns(
    csv: Path | CsvFile,
    wanted: Sequence[str | tuple[str, ...]],
    *,
    several_lines: Collection[str] = (),
) -> CsvColumns:
    """Read named columns of a csv (or .csv.gz); other columns and blank lines are ignored.

    Args:
        csv: The file, or the result of `open_csv`.
        wanted: Names of the columns. A tuple lists alternative spellings; the first is the name in
            the result.
        several_lines: Columns whose cells may contain line breaks, in quotes. Default: none.

    Raises:
        InputError: The file cannot be read or has no rows, a column is missing or not unique, a
            line does not have as many cells as the header, or a cell has several lines.

    Example:
        >>> columns = read_columns(Path("a.csv"), ["image", ("sex", "gender")])  # doctest: +SKIP
        >>> columns.decode("sex", str.upper)  # doctest: +SKIP
        array(['F', 'M'], dtype=object)
    """
    file = csv if isinstance(csv, CsvFile) else open_csv(csv)
    spellings = [(name,) if isinstance(name, str) else name for name in wanted]
    where = {names[0]: _position(file, names) for names in spellings}
    cells: dict[str, list[str]] = {name: [] for name in where}
    lines: list[int] = []
    wrong: list[Fault] = []
    for line, row in islice(file.rows(), 1, None):
        line_text = "".join(row)
        if not line_text.strip():
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
        if len(line_text.splitlines()) > 1:
            what = "the cell has several lines; a quote too many?"
            plain = [name for name in where if name not in several_lines]
            odd = [name for name in plain if len(cells[name][-1].splitlines()) > 1]
            wrong += [(line, name, what, 1) for name in odd]
    if wrong:
        raise faults_error(file.path, wrong)
    if not lines:
        raise InputError(f"{file.path} has a header but no rows; needs one line per row.")
    table = pd.DataFrame(cells, pd.Index(lines, name="line"), dtype=object)
    return CsvColumns(file.path, table)


def faults_error(path: Path, found: Sequence[Fault]) -> InputError:
    """Create the error about faults of a csv: the first on line one, then a list of all.

    Args:
        path: The csv.
        found: At least one fault, in the order of the message; at most `MOST_SHOWN` are listed.
    """
    total = sum(number for *_, number in found)
    shown = []
    for line, column, what, number in found[:MOST_SHOWN]:
        place = f"line {line}" if column is None else f"line {line}, column '{column}'"
        shown.append((f"{place}: {what}", f" ({number:,} times)" if number > 1 else ""))
    first = f"{path}, {shown[0][0]}"
    if total == 1:
        return InputError(first)
    lines = [first, f"In all {total:,} faults:", *(f"  {text}{times}" for text, times in shown)]
    if len(found) > MOST_SHOWN:
        lines.append(f"  and {sum(number for *_, number in found[MOST_SHOWN:]):,} more")
    return InputError("\n".join(lines))


def _utf8(path: Path, encoding: str | None) -> bytes:
    """Content of a file in UTF-8 without a byte order mark; see `open_csv`."""
    try:
        raw = path.read_bytes()
        raw = gzip.decompress(raw) if path.suffix == ".gz" else raw
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path} cannot be read as csv: {error}.") from error
    if raw.startswith(_WORKBOOKS):
        raise InputError(f"{path} is a workbook, not a csv; save the sheet as 'CSV UTF-8'.")
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
    """The separator: the only one in the header, or the one that all first lines have as often."""
    first = [row.decode() for row in islice(io.BytesIO(text), _SAMPLE)]
    outside = re.sub(r'"[^"]*"', "", "".join(first)).splitlines()  # a cell may have several lines
    found = [mark for mark in SEPARATORS if mark in outside[0]]
    if len(found) > 1:
        rows = [each for each in outside if each.strip()]
        alike = [mark for mark in found if len({each.count(mark) for each in rows}) == 1]
        found = alike or found
    if len(found) > 1:
        several = " and ".join(SEPARATORS[mark] for mark in found)
        raise InputError(
            f"{path}, line {line}: the header has {several}; which of them separates the cells is "
            "ambiguous. Save the file with one of them, and names that contain another in quotes."
        )
    return found[0] if found else ","


def _position(file: CsvFile, names: tuple[str, ...]) -> int:
    """Index of the one column that has one of these names."""
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
