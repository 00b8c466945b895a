"""Images decoded once and cached, with what is wrong with each; sites of one folder share them.

A store is a folder `images/<images folder>-<size>-<key>` of the cache. It holds the decoded images
(see `image_journal`) and perhaps `problems.csv`, the images that the last caller could not use. It
can be deleted.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import BrokenExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
from filelock import FileLock

from cxr_study.common import files as common_files
from cxr_study.data.images import bit_depth
from cxr_study.data.images.image_files import (
    SIDES,
    ImageError,
    Source,
    allowed,
    file_stamp,
    look_at,
)
from cxr_study.data.images.image_journal import OK, UNREADABLE, ImageJournal, Known

__all__ = ["check_limit", "prepare"]

RECIPE = 5  # raise it when `decoding` gives other pixels than before: what is kept is made again

MISSING = "missing"
DUPLICATE = "duplicate"


@dataclass(frozen=True, eq=False)
class Prepared:
    """Images, decoded.

    Attributes:
        index: One row per image asked for, in that order, with a RangeIndex: `image`, `file`,
            `status` (ok, missing, unreadable, constant: all pixels equal, or duplicate: the pixels
            of an earlier image), `detail` (why, or of which image), `row` (int64; -1 unless ok),
            and `notes` and `view` (see `decoding.Decoded`; "" where there is none).
        pixels: uint8 (m, size, size), with 3 channels (m, size, size, 3), memory-mapped and
            read-only; has other callers' images too.
        folder: The store.
        decoded: How many files were decoded this time.
        bits: What the values of its 16-bit pictures fill; None: not known, see `bit_depth.decide`.
    """

    index: pd.DataFrame
    pixels: np.ndarray
    folder: Path
    decoded: int
    bits: int | None = None

    @property
    def problems(self) -> Path:
        """The csv that lists the unusable images."""
        return self.folder / "problems.csv"


def prepare(
    folder: Path,
    images: Iterable[str],
    files: Iterable[str],
    size: int,
    *,
    channels: int = 1,
    bits: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Prepared:
    """Decode the images that are new or whose file has changed, and open all.

    Safe to kill, and to call from several processes: one at a time decodes, and what it decoded
    stays. Unusable images are reported, not raised; see `check_limit`. A file that could not be
    decoded is not tried again until it changes; one that could not be read is.

    Args:
        folder: The images folder; with the size, it decides which store is used.
        images: Names of the images.
        files: Path of each image's file, "" where there is none.
        size: Side of the square images become, pixels.
        channels: 1, grey, or 3, red, green and blue.
        bits: That the values of 16-bit pictures fill, see `decoding.decode`. Default: as some of
            them tell, see `bit_depth.decide`.
        progress: Called as progress(done, total) after each file decoded.

    Raises:
        ImageError: The size is none of `SIDES`, the store cannot be written or read, or a decoding
            process was killed.
    """
    if type(size) is not int or size not in SIDES:
        raise ImageError(
            f"images become squares of {SIDES[0]} to {SIDES[-1]} pixels a side; got {size!r}."
        )
    folder = Path(folder).absolute()
    sources, failures = look_at(folder, images, files)
    if bits is None:
        bits = bit_depth.decide([source.path for source in sources if source.stamp])
    store = _store(folder, size, bits, channels)
    journal = ImageJournal(store, size, channels)
    decoded = 0
    try:
        store.mkdir(mode=0o700, parents=True, exist_ok=True)  # patients' images
        known = journal.read()
        if _undecoded(known, sources):  # else nothing that decodes needs to be imported
            from cxr_study.data.images.decoding import decode_files

            with FileLock(store / "lock"):
                journal.repair()
                todo = _undecoded(journal.read(), sources)  # others decoded while this one waited
                decoded = len(todo)
                failures |= decode_files(todo, journal, progress, bits)
                known = journal.read()
        index = _index(sources, known, failures)
        prepared = Prepared(index, journal.pixels(), store, decoded, bits)
        list_problems(prepared)
    except OSError as error:
        raise ImageError(
            f"decoded images cannot be kept in {store}: {error.strerror or error}. Make room "
            "there, or set SURGAGG_CACHE to another folder; what was decoded is not lost."
        ) from error
    except BrokenExecutor as error:
        raise ImageError(
            f"a process that decoded images of {folder} was ended from outside, as happens where "
            "memory is short. Start again where there is more; what was decoded is not lost."
        ) from error
    return prepared


class KeptImages:
    """Grey images that were decoded before, wherever their store is; nothing is decoded.

    Args:
        size: Side of their squares, pixels.
        bits: See `prepare`; what was decoded with others is not found.
    """

    def __init__(self, size: int, bits: int | None = None):
        self.size = size
        self.bits = bits
        self._opened: dict[Path, tuple[Mapping[str, Known], np.ndarray] | None] = {}

    def find(self, path: str) -> tuple[np.ndarray, Known] | None:
        """Pixels of a file, uint8 (size, size), and what is known of it; None: not as it is now."""
        file = Path(os.path.abspath(path))  # noqa: PTH100 (links stay: the store goes by folders)
        for folder in file.parents:
            kept = self._open(folder)
            if kept is None:
                continue
            known = kept[0].get(str(file.relative_to(folder)))
            if known is not None and known.status == OK and _unchanged(file, known):
                return kept[1][known.row], known
        return None

    def _open(self, folder: Path) -> tuple[Mapping[str, Known], np.ndarray] | None:
        if folder not in self._opened:
            store = _store(folder, self.size, self.bits)
            journal = ImageJournal(store, self.size)
            self._opened[folder] = (journal.read(), journal.pixels()) if store.is_dir() else None
        return self._opened[folder]


def check_limit(prepared: Prepared, limit: int | str, where: str) -> None:
    """Refuse more unusable images than a limit, see `allowed`; the message starts with `where`.

    Raises:
        ImageError: Counts them by kind, names the first five and the list of all.
    """
    index = prepared.index
    bad = index[index["status"] != OK]
    most = allowed(limit, len(index))
    if len(bad) <= most:
        return
    kinds = ", ".join(f"{number} {kind}" for kind, number in bad["status"].value_counts().items())
    first = ", ".join(
        f"{row.image} ({row.status}{': ' if row.detail else ''}{row.detail})"
        for row in bad.head(5).itertuples()
    )
    raise ImageError(
        f"{where} lets {most} of {len(index)} images be unusable; {len(bad)} of {len(index)} are "
        f"({kinds}), first {first}. All are listed in {prepared.problems}. Replace their files, or "
        "set a higher limit."
    )


def _store(folder: Path, size: int, bits: int | None, channels: int = 1) -> Path:
    kind = f"{size}{'-colour' if channels == 3 else ''}{f'-{bits}bit' if bits else ''}"
    resolved = folder.resolve()
    key = hashlib.sha256(f"{resolved}\0{RECIPE}".encode("utf-8", "surrogateescape"))
    name = re.sub(r"[^\w.-]+", "_", "-".join(resolved.parts[-2:]))
    return common_files.cache_dir() / "images" / f"{name}-{kind}-{key.hexdigest()[:12]}"


def _unchanged(file: Path, known: Known) -> bool:
    try:
        return file_stamp(str(file)) == known.stamp
    except OSError:
        return False


def _undecoded(known: Mapping[str, Known], sources: Iterable[Source]) -> list[Source]:
    """Files that were never decoded as they are now, each once."""
    todo = {
        source.file: source
        for source in sources
        if source.stamp is not None
        and (source.file not in known or known[source.file].stamp != source.stamp)
    }
    return list(todo.values())


def _index(
    sources: Sequence[Source], known: Mapping[str, Known], failures: Mapping[str, str]
) -> pd.DataFrame:
    rows = []
    state: tuple[object, ...]
    for source in sources:
        if source.file in failures:
            state = (UNREADABLE, failures[source.file], "", "", "", -1)
        elif source.stamp is None:
            state = (MISSING, "", "", "", "", -1)
        else:
            state = known[source.file][1:]
        rows.append((source.image, source.path, *state))
    index = pd.DataFrame(
        rows, columns=["image", "file", "status", "detail", "hash", "notes", "view", "row"]
    )
    usable = index[index["status"] == OK]
    again = usable[usable.duplicated("hash")]
    first = usable.drop_duplicates("hash").set_index("hash")["image"]
    index.loc[again.index, "detail"] = again["hash"].map(first)
    index.loc[again.index, ["status", "row"]] = (DUPLICATE, -1)
    return index.drop(columns="hash")


def list_problems(prepared: Prepared) -> None:
    """List the images that cannot be used in `Prepared.problems`; none: no such file."""
    bad = prepared.index[prepared.index["status"] != OK]
    bad = bad[["image", "file", "status", "detail"]]
    if bad.empty:
        prepared.problems.unlink(missing_ok=True)
        return
    with common_files.whole(prepared.problems) as half:
        bad.to_csv(half, index=False, lineterminator="\n", errors="surrogateescape")


@dataclass(frozen=True, eq=False)
class Images:
    """Decoded images of a site, with what is known of each.

    Attributes:
        table: A row per image, with a RangeIndex: a label table, or labels alone.
        pixels: uint8 (m, side, side), memory-mapped: the store.
        rows: Row of `pixels` of each image, shape (n,), int64.
        site: Whose they are; "": several sites'.
        labelled: Classes that the site labels itself; those of other columns are the truth's.
    """

    table: pd.DataFrame
    pixels: np.ndarray
    rows: np.ndarray
    site: str = ""
    labelled: frozenset[str] = frozenset()

    def of(self, split: str) -> Images:
        """Those of a split."""
        chosen = np.flatnonzero(self.table["split"] == split)
        table = self.table.iloc[chosen].reset_index(drop=True)
        return replace(self, table=table, rows=self.rows[chosen])

    def labels(self, classes: Sequence[str]) -> np.ndarray:
        """Labels of some classes, float64 (n, classes); NaN where nobody knows."""
        return self.table.reindex(columns=list(classes)).to_numpy(float)
