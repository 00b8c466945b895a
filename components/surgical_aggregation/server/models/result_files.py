"""Results of the running round on the server's disk, so that its memory does not grow with sites."""

from __future__ import annotations

import mmap
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from surgical_aggregation.aggregation.averaging import Array
from surgical_aggregation.aggregation.result_checks import Contribution
from surgical_aggregation.wire import variables as wire

_ALIGNED = 64
"""Every array begins at a multiple of this many bytes, as NumPy's own do."""


def on_disk(contribution: Contribution, folder: Path) -> Contribution:
    """The same result, its arrays read from a file when they are looked at, and not writable.

    The file has no name any more: the system removes it when nobody holds the arrays, also where
    the process is killed. It is not synced, for a round that is lost is made again.

    Args:
        contribution: A result that `result_checks.fault` has found whole.
        folder: Where there is room for the results of all sites.

    Raises:
        OSError: The disk does not take it.
    """
    variables = wire.join(contribution.body, contribution.columns)
    mapped = _mapped(variables, folder)
    body, columns = wire.split({name: mapped[name] for name in variables})
    return replace(contribution, body=body, columns=columns)


def _mapped(variables: Mapping[str, Array], folder: Path) -> dict[str, Array]:
    folder.mkdir(parents=True, exist_ok=True)
    places: dict[str, int] = {}
    with tempfile.TemporaryFile(dir=folder) as file:
        for name, value in variables.items():
            places[name] = file.tell()
            file.write(np.ascontiguousarray(value).data)
            file.write(bytes(-file.tell() % _ALIGNED or _ALIGNED))
        file.flush()
        content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    return {
        name: np.ndarray(value.shape, value.dtype, content, places[name])
        for name, value in variables.items()
    }
