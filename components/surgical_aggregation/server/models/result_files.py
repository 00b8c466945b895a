"""Results of the running round on the server's disk, so that they do not fill its memory."""

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
"""Kinds of dtypes that a model's variables and packed ciphertexts have."""

_ALIGNED = 64
"""Every array begins at a multiple of this many bytes, as NumPy's own do."""


class NoRoomError(Exception):
    """The server's disk does not take a result."""


@dataclass
class ArraysFile:
    """Arrays that are written to a file as they come, and read from it when they are looked at.

    Numbers alone are written. Of an array of anything else (dates, texts, records, bytes) its dtype
    is kept, in an empty array, for `result_checks.fault` to name.

    The file has no name: the system removes it when nobody holds its arrays, also where the process
    is killed. It is not synced, for a round that is lost is made again.

    Args:
        folder: Where there is room for the results of all sites.
        without_room: Is told of the error when the disk takes no more. Default None.
    """

    folder: Path
    without_room: Callable[[NoRoomError], object] | None = None
    _places: dict[str, tuple[tuple[int, ...], DTypeLike, int]] = field(default_factory=dict)

    @cached_property
    def _file(self) -> IO[bytes]:
        self.folder.mkdir(parents=True, exist_ok=True)
        return tempfile.TemporaryFile(dir=self.folder)

    def add(self, arrays: Variables) -> None:
        """Write arrays, by name.

        Raises:
            NoRoomError: The disk does not take them; there are none any more then.
        """
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
                f"a result could not be kept in {str(self.folder)!r} until the end of its round: "
                f"{error.strerror or error}. The results of all sites must have room there: make "
                "some, and continue the job."
            )
            self._places.clear()
            with suppress(OSError):  # of what is not written yet
                self._file.close()
            if self.without_room:
                self.without_room(full)
            raise full from error

    def arrays(self) -> dict[str, Array]:
        """All arrays by name, and no more can be added; what is written to them stays in memory."""
        if not self._places:
            return {}
        with self._file as file:
            content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
        return {
            name: np.ndarray(shape, dtype, content, place)
            for name, (shape, dtype, place) in self._places.items()
        }


def on_disk(arrays: Variables, folder: Path) -> dict[str, Array]:
    """The same arrays, in an `ArraysFile`."""
    file = ArraysFile(folder)
    file.add(arrays)
    return file.arrays()
