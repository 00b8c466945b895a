"""The table of predictions on disk, csv or Parquet: written chunk by chunk, whole or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pandas as pd

from cxr_study.common.files import whole

Append = Callable[[pd.DataFrame], None]


class PredictionFileError(ValueError):
    """A file's suffix says no format that can be written here."""


def check(path: Path) -> None:
    """Refuse a file that `opened` could not write, before anything is predicted.

    Raises:
        PredictionFileError: The suffix is another than .csv or .parquet, or a library is missing.
    """
    if path.suffix not in (".csv", ".parquet"):
        raise PredictionFileError(f"predictions need a file .csv or .parquet; got {path}.")
    if path.suffix == ".parquet":
        try:
            import pyarrow  # noqa: F401
        except ImportError:
            raise PredictionFileError(
                "a Parquet file needs pyarrow: pip install 'surgical-aggregation[parquet]'. Or "
                "give a file .csv."
            ) from None


@contextmanager
def opened(path: Path) -> Iterator[Append]:
    """Write a table in parts, in a `with` block, at whose end the file is there.

    Floats are written so that they are read back bit for bit.

    Example:
        >>> with opened(Path("p.csv")) as append:  # doctest: +SKIP
        ...     append(frame)
    """
    with whole(path) as half:
        if path.suffix == ".parquet":
            with _parquet(half) as append:
                yield append
        else:
            with half.open("w", encoding="utf-8", newline="") as file:

                def append(frame: pd.DataFrame) -> None:
                    frame.to_csv(file, index=False, header=not file.tell(), lineterminator="\n")

                yield append


@contextmanager
def _parquet(path: Path) -> Iterator[Append]:
    import pyarrow as pa
    from pyarrow.parquet import ParquetWriter

    writers: list[ParquetWriter] = []

    def append(frame: pd.DataFrame) -> None:
        part = pa.Table.from_pandas(frame, preserve_index=False)
        if not writers:
            writers.append(ParquetWriter(path, part.schema))
        writers[0].write_table(part.cast(writers[0].schema))

    try:
        yield append
    finally:
        for writer in writers:
            writer.close()
