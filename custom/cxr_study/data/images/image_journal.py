"""Decoded images on disk: a file with rows of pixels, and JSON lines that describe the rows.

Both files are only appended to, and pixels are on disk before the line that refers to them. A
killed process thus leaves at most rows without a line, which do no harm, and an incomplete row or
line, which `repair` cuts off.
"""

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from cxr_study.data.images.image_files import Source

OK = "ok"
UNREADABLE = "unreadable"
CONSTANT = "constant"

_HEADER = (
    "image", "file", "bytes", "mtime_ns", "ctime_ns", "status", "detail", "hash", "notes", "view",
    "row",
)  # fmt: skip


class Known(NamedTuple):
    """Entry of one file in the journal.

    Attributes:
        stamp: `file_stamp` of the file when it was decoded.
        status: OK, UNREADABLE or CONSTANT (all pixels equal); only OK has a hash and pixels.
        detail: Why it is unreadable.
        hash: BLAKE2b of its pixels, 16 bytes in hexadecimal.
        notes: Notes of `decoding.Decoded`, joined by "; ".
        view: View of `decoding.Decoded`.
        row: Row of its pixels in the journal; -1 if it has none.
    """

    stamp: tuple[int, int, int]
    status: str
    detail: str = ""
    hash: str = ""
    notes: str = ""
    view: str = ""
    row: int = -1


@dataclass(frozen=True)
class ImageJournal:
    """The files `pixels.u8` and `index.jsonl` in the folder of a store.

    Attributes:
        folder: The store's folder.
        size: Side of the images, pixels.
        channels: 1 (grey) or 3 (red, green, blue).
    """

    folder: Path
    size: int
    channels: int = 1

    def read(self) -> dict[str, Known]:
        """Read the index: file, as in `Source.file`, -> its latest entry.

        Incomplete lines, and lines whose pixels are missing, are skipped.
        """
        *lines, _ = self._index.read_bytes().split(b"\n") if self._index.exists() else [b""]
        rows = self._whole_rows()
        known = {}
        for line in lines:
            try:
                _, file, length, changed, renamed, *what, row = json.loads(line)
                status, detail, digest, notes, view = what
            except (ValueError, TypeError):
                continue  # left by a crash of the machine
            if isinstance(row, int) and row < rows and (row >= 0) == (status == OK):
                stamp = length, changed, renamed
                known[file] = Known(stamp, status, detail, digest, notes, view, row)
        return known

    def pixels(self) -> np.ndarray:
        """Open the pixels: uint8 (rows, size, size), in colour (rows, size, size, 3).

        The array is memory-mapped and read-only.
        """
        colours = () if self.channels == 1 else (self.channels,)
        shape = (self._whole_rows(), self.size, self.size, *colours)
        if not shape[0]:
            return np.empty(shape, np.uint8)
        return np.memmap(self._pixels, np.uint8, mode="r", shape=shape)

    def repair(self) -> None:
        """Cut off an incomplete row or line of a killed process; the caller holds the lock."""
        if self._index.exists():
            os.truncate(self._index, self._index.read_bytes().rfind(b"\n") + 1)
        if self._pixels.exists():
            os.truncate(self._pixels, self._whole_rows() * self._bytes)

    def append(self, entries: Iterable[tuple[Source, Known, np.ndarray | None]]) -> None:
        """Append files to the journal; the caller holds the lock and has called `repair`.

        Args:
            entries: For each file its source, its entry (without `row`), and its pixels: uint8
                (size, size[, 3]), None unless the status is OK.
        """
        lines: list[tuple[str | int, ...]] = [] if self._index.exists() else [_HEADER]
        row, pixels = self._whole_rows(), bytearray()
        for source, known, decoded in entries:
            place = -1 if decoded is None else row
            lines.append((source.image, source.file, *known.stamp, *known[1:-1], place))
            if decoded is not None:
                pixels += decoded.tobytes()
                row += 1
        _append(self._pixels, pixels)
        _append(self._index, "".join(f"{json.dumps(line)}\n" for line in lines).encode())

    @property
    def _index(self) -> Path:
        return self.folder / "index.jsonl"

    @property
    def _pixels(self) -> Path:
        return self.folder / "pixels.u8"

    @property
    def _bytes(self) -> int:
        """Bytes of an image."""
        return self.size**2 * self.channels

    def _whole_rows(self) -> int:
        return self._pixels.stat().st_size // self._bytes if self._pixels.exists() else 0


def _append(path: Path, data: bytes | bytearray) -> None:
    with path.open("ab") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
