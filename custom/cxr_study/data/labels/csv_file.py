r"""Open a csv, and say of every line whether it can be read and where it stands.

Commas, semicolons or tabs between the cells; UTF-8, UTF-16 with its mark, or an encoding that is
named; `\n` or `\r\n`; perhaps gzipped. Nothing is guessed: where a file can be taken in two ways it
is refused.
"""

import codecs
import csv
import gzip
import io
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path

import numpy as np

from cxr_study.common.errors import InputError

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs"}
MOST_SHOWN = 20
"""Faults of one file that an error lists; it counts them all."""

_WORKBOOKS = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")  # xlsx and ods; xls
_NOT_PLAIN = b'\n"\0\x0b\x0c\x1c\x1d\x1e'
_UNICODE_LINE_ENDS = tuple(mark.encode() for mark in "\x85\u2028\u2029")
_LOOKED_AT = 100  # lines that tell two separators apart


def faults(path: Path, found: Sequence[tuple[str, str, int]]) -> InputError:
    """Error about the faults of a csv: the first in full, then the others, a line each.

    Args:
        path: The csv.
        found: Where ("line 3, column 'Edema'"), what is wrong, and how often, each.
    """
    (where, what, _), total = found[0], sum(number for *_, number in found)
    first = f"{path}, {where}: {what}"
    if total == 1:
        return InputError(first)
    listed = [
        f"  {where}: {what}{f' ({number:,} times)' if number > 1 else ''}"
        for where, what, number in found[:MOST_SHOWN]
    ]
    if len(found) > MOST_SHOWN:
        listed.append(f"  and {sum(number for *_, number in found[MOST_SHOWN:]):,} more")
    return InputError("\n".join([first, f"In all {total:,} faults:", *listed]))


@dataclass(frozen=True)
class CsvFile:
    """A csv, opened.

    Attributes:
        path: Of the file.
        text: From the header on, UTF-8, with a line end at the end.
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
        for _, row in self._rows():
            return [name.strip() for name in row]
        raise InputError(f"{self.path} is empty; needs a header line and one line per row.")

    def is_plain(self) -> bool:
        """Whether all lines are as many cells as the header and none is in quotes."""
        text, separator = self.text, self.separator.encode()
        if b"\r" in text and text.count(b"\r") != text.count(b"\r\n"):
            return False
        if not text.isascii() and any(mark in text for mark in _UNICODE_LINE_ENDS):
            return False
        others = bytes(set(range(256)) - set(separator + _NOT_PLAIN))
        line = separator * (len(self.header) - 1) + b"\n"
        return text.translate(None, others) == line * text.count(b"\n")

    def lines(self) -> np.ndarray:
        """Line in the file of every row below the header; 0 for a blank one.

        Raises:
            InputError: A row has not as many cells as the header, or cannot be read.
        """
        width = len(self.header)
        numbers, wrong = [], []
        for number, row in islice(self._rows(), 1, None):
            blank = not any(row) or "".join(row).isspace()
            numbers.append(0 if blank else number)
            if len(row) != width and not blank:
                what = (
                    f"the line has {len(row)} cells, the header {width}; is the file cut off, or "
                    f"one of its {SEPARATORS[self.separator]} in a cell without quotes around it?"
                )
                wrong.append((f"line {number}", what, 1))
        if wrong:
            raise faults(self.path, wrong)
        return np.array(numbers, int)

    def _rows(self) -> Iterator[tuple[int, list[str]]]:
        """Where every row begins, and its cells."""
        number = self.line - 1
        text = io.TextIOWrapper(io.BytesIO(self.text), encoding="utf-8", newline="")
        try:
            reader = csv.reader(text, strict=True, delimiter=self.separator)
            for row in reader:
                if "\0" in "".join(row):
                    raise InputError(
                        f"{self.path}, line {number + 1}: a NUL byte; is the file damaged, or in "
                        "UTF-16 without its mark? Save it as UTF-8."
                    )
                yield number + 1, row
                number = self.line - 1 + reader.line_num
        except csv.Error as error:
            where = f"{self.path}, line {number + 1}"
            raise InputError(
                f"{where}: cannot be read as csv: {error}; a quote too many?"
            ) from error


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
    text = _utf8(path, _bytes(path), encoding)
    if not text.endswith((b"\n", b"\r")):
        text += b"\n"
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


def _bytes(path: Path) -> bytes:
    try:
        raw = path.read_bytes()
        return gzip.decompress(raw) if path.suffix == ".gz" else raw
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path} cannot be read as csv: {error}.") from error


def _utf8(path: Path, raw: bytes, encoding: str | None) -> bytes:
    if raw.startswith(_WORKBOOKS):
        raise InputError(f"{path} is a workbook, no csv; save the sheet as 'CSV UTF-8'.")
    if raw.startswith(codecs.BOM_UTF8):
        raw, encoding = raw.removeprefix(codecs.BOM_UTF8), None
    elif raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        encoding = "utf-16"
    if encoding is None and raw.isascii():
        return raw
    if encoding is not None and re.match("utf.?(16|32)", encoding.lower()) and b"\0" not in raw:
        raise InputError(f"{path} is not in {encoding}; leave --encoding out, or name another.")
    try:
        text = raw.decode(encoding or "utf-8")
    except LookupError:
        raise InputError(f"--encoding: '{encoding}' is no encoding; cp1252 is one.") from None
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
