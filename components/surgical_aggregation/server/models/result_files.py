"""Keep the running round's results on the server's disk instead of in memory."""

from __future__ import annotations

import mmap
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import DTypeLike

from surgical_aggregation.aggregation.averaging import Array, Variables

_NUMBERS = "fiub"
"""Kinds of dtypes (`dtype.kind`) of a model's variables and packed ciphertexts."""

_ALIGNED = 64
"""Alignment of every array in the file, in bytes; NumPy's own."""


class NoRoomError(Exception):
    """A result cannot be written to the server's disk."""


@dataclass
class ArraysFile:
    """A temporary file that arrays are appended to as they arrive, and memory-mapped from.

    Only numeric arrays are written. Any other array (dates, texts, records, bytes) is replaced by
    an empty one of its dtype, which `result_checks.fault` reports.

    The file has no name: the system deletes it once its arrays are released, also if the process is
    killed. It is not synced to disk, since a lost round is repeated.

    Args:
        folder: Folder with room for the results of all sites.
        limit: Largest size of the arrays, in bytes. Default None: any.
        on_error: Called with the error if the file cannot be written. Default None.
    """

    folder: Path
    limit: int | None = None
    on_error: Callable[[NoRoomError], object] | None = None
    _places: dict[str, tuple[tuple[int, ...], DTypeLike, int]] = field(default_factory=dict)

    @cached_property
    def _file(self) -> IO[bytes]:
        self.folder.mkdir(parents=True, exist_ok=True)
        return tempfile.TemporaryFile(dir=self.folder)

    def add(self, arrays: Variables) -> None:
        """Append arrays, by name.

        Raises:
            ValueError: There are more than `limit` bytes.
            NoRoomError: They cannot be written; the earlier ones are discarded, too.
        """
        size = self._file.tell() + sum(value.nbytes for value in arrays.values())
        if self.limit is not None and size > self.limit:
            raise ValueError(f"it has more than {self.limit} bytes, the limit 'result_bytes'")
        try:
            for name, value in arrays.items():
                fits, place = value.dtype.kind in _NUMBERS, self._file.tell()
                if fits:
                    self._file.write(np.ascontiguousarray(value).data)
                self._places[name] = value.shape if fits else (0,), value.dtype, place
                self._file.write(bytes(-self._file.tell() % _ALIGNED or _ALIGNED))
                self._file.flush()
        except OSError as error:
            full = NoRoomError(
                f"a result could not be written to {str(self.folder)!r}: "
                f"{error.strerror or error}. The disk must hold a round's results of all sites: "
                "free some space, and resume the run."
            )
            self._places.clear()
            with suppress(OSError):  # closing flushes what is not written yet
                self._file.close()
            if self.on_error:
                self.on_error(full)
            raise full from error

    def arrays(self) -> dict[str, Array]:
        """All arrays by name, copy-on-write; no more can be added afterwards."""
        if not self._places:
            return {}
        with self._file as file:
            content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
        return {
            name: np.ndarray(shape, dtype, content, place)
            for name, (shape, dtype, place) in self._places.items()
        }


def on_disk(arrays: Variables, folder: Path) -> dict[str, Array]:
    """Copies of the arrays in an `ArraysFile`."""
    file = ArraysFile(folder)
    file.add(arrays)
    return file.arrays()
