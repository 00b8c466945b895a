"""The table of predictions on disk, a csv file: written chunk by chunk, whole or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pandas as pd

from cxr_study.common.files import whole

Append = Callable[[pd.DataFrame], None]


def check(path: Path) -> None:
    """Refuse a file that `opened` could not write, before anything is predicted.

    Raises:
        ValueError: The suffix is another than .csv.
    """
    if path.suffix != ".csv":
        raise ValueError(f"predictions need a file .csv; got {path}.")


@contextmanager
def opened(path: Path) -> Iterator[Append]:
    """Write a table in parts, in a `with` block, at whose end the file is there.

    Floats are written so that they are read back bit for bit.

    Example:
        >>> with opened(Path("p.csv")) as append:  # doctest: +SKIP
        ...     append(frame)
    """
    with whole(path) as half, half.open("w", encoding="utf-8", newline="") as file:

        def append(frame: pd.DataFrame) -> None:
            frame.to_csv(file, index=False, header=not file.tell(), lineterminator="\n")

        yield append
