"""Decoded images on disk: rows of pixels, and lines of JSON that say what is in which row.

Both files only grow, and pixels are on disk before the line that names them. So a killed process
leaves at most unnamed rows, which do no harm, and half a row or line, which `repair` cuts off.
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

_HEADER = ("image", "file", "bytes", "mtime_ns", "status", "detail", "hash", "notes", "view", "row")


class Known(NamedTuple):
    """What the journal says of one file.

    Attributes:
        stamp: Length and time of change (ns) of the file when it was read.
        status: OK, UNREADABLE or CONSTANT; the latter two have no hash and pixels.
        detail: Why it is unreadable.
        hash: Of its pixels.
        notes: See `decoding.Decoded`, by "; ".
        view: See `decoding.Decoded`.
        row: Of its pixels in the journal; -1: none there.
    """

    stamp: tuple[int, int]
    status: str
    detail: str = ""
    hash: str = ""
    notes: str = ""
    view: str = ""
    row: int = -1


@dataclass(frozen=True)
class ImageJournal:
    """`pixels.u8` and `index.jsonl` in a store's folder.

    Images are of `size` x `size` pixels, in grey (`channels` 1) or colour (3).
    """

    folder: Path
    size: int
    channels: int = 1

    def read(self) -> dict[str, Known]:
        """What is known of each file; skips lines that are not whole."""
        *lines, _ = self._index.read_bytes().split(b"\n") if self._index.exists() else [b""]
        rows = self._whole_rows()
        known = {}
        for line in lines:
            try:
                _, file, length, changed, *what, row = json.loads(line)
                status, detail, digest, notes, view = what
            except (ValueError, TypeError):
                continue  # what a crash of the machine left
            if isinstance(row, int) and row < rows and (row >= 0) == (status == OK):
                known[file] = Known((length, changed), status, detail, digest, notes, view, row)
        return known

    def pixels(self) -> np.ndarray:
        """Open the pixels: uint8 (rows, size, size[, 3]), memory-mapped and read-only."""
        colours = () if self.channels == 1 else (self.channels,)
        shape = (self._whole_rows(), self.size, self.size, *colours)
        if not shape[0]:
            return np.empty(shape, np.uint8)
        return np.memmap(self._pixels, np.uint8, mode="r", shape=shape)

    def repair(self) -> None:
        """Cut off what a killed process left unfinished; the caller holds the store's lock."""
        if self._index.exists():
            os.truncate(self._index, self._index.read_bytes().rfind(b"\n") + 1)
        if self._pixels.exists():
            os.truncate(self._pixels, self._whole_rows() * self._bytes)

    def append(self, entries: Iterable[tuple[Source, Known, np.ndarray | None]]) -> None:
        """Add files with what is to be known of them, and their pixels where they are OK.

        The caller holds the lock and has called `repair`.
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
        """Of an image."""
        return self.size**2 * self.channels

    def _whole_rows(self) -> int:
        return self._pixels.stat().st_size // self._bytes if self._pixels.exists() else 0


def _append(path: Path, data: bytes | bytearray) -> None:
    with path.open("ab") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
