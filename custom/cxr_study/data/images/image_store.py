"""A cache of decoded images and of the problems with them; sites of one images folder share it.

A store is a folder `images/<images folder>-<size>-<key>` of the cache. It contains the decoded
images (see `image_journal`) and `problems.csv`, which lists the unusable images of the last call,
if there were any. It can be deleted at any time: images are then decoded again.
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
    stat_files,
)
from cxr_study.data.images.image_journal import OK, UNREADABLE, ImageJournal, Known

__all__ = ["check_limit", "prepare"]

RECIPE = 6  # increase it when pixels or the journal change, so that stores are rebuilt

MISSING = "missing"
DUPLICATE = "duplicate"


@dataclass(frozen=True, eq=False)
class Prepared:
    """The images of a call of `prepare`.

    Attributes:
        index: One row per requested image, in order, with a RangeIndex. Columns: `image`; `file`
            (path, "" if missing); `status` (ok, missing, unreadable, constant: all pixels equal,
            or duplicate: the pixels of an earlier image); `detail` (the reason, or that image);
            `notes` and `view` (see `decoding.Decoded`; "" if there is none); `row` (int64, row of
            `pixels`; -1 unless ok).
        pixels: uint8 (m, size, size), with 3 channels (m, size, size, 3), memory-mapped and
            read-only. Also contains images of other calls.
        folder: The store.
        decoded: Number of files that this call decoded.
        bits: Bits that the values of 16-bit images fill, see `bit_depth.estimate_bits`; None:
            unknown.
    """

    index: pd.DataFrame
    pixels: np.ndarray
    folder: Path
    decoded: int
    bits: int | None = None

    @property
    def problems(self) -> Path:
        """Path of the csv that lists the unusable images; it exists only if there are any."""
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
    """Decode images that are new or whose file has changed, and open all of them.

    The call can be killed and repeated without losing decoded images. Several processes may call
    it: one at a time decodes. Unusable images are reported in the result, not raised; see
    `check_limit`. A file that could not be decoded is tried again only after it has changed; a file
    that could not be read is tried again in every call.

    Args:
        folder: The images folder. Folder, size, channels and bits determine the store.
        images: Names of the images.
        files: Path of each image's file; "" if it has none.
        size: Side of the square that each image is resized to, pixels.
        channels: 1 (grey) or 3 (red, green, blue).
        bits: Bits that the values of 16-bit images use, see `decoding.decode`. Default: estimated
            from a sample, see `bit_depth.estimate_bits`.
        progress: Called as progress(done, total) after each decoded file.

    Raises:
        ImageError: The size is not in `SIDES`, the store cannot be written or read, or a decoding
            process was killed.
    """
    if type(size) is not int or size not in SIDES:
        raise ImageError(
            f"images become squares of {SIDES[0]} to {SIDES[-1]} pixels a side; got {size!r}."
        )
    folder = Path(folder).absolute()
    sources, failures = stat_files(folder, images, files)
    if bits is None:
        bits = bit_depth.estimate_bits([source.path for source in sources if source.stamp])
    store = _store(folder, size, bits, channels)
    journal = ImageJournal(store, size, channels)
    decoded = 0
    try:
        store.mkdir(mode=0o700, parents=True, exist_ok=True)  # private: images of patients
        known = journal.read()
        if _undecoded(known, sources):  # else no decoder needs to be imported
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
            f"decoded images cannot be stored in {store}: {error.strerror or error}. Make room "
            "there, or set SURGAGG_CACHE to another folder; images decoded so far are kept."
        ) from error
    except BrokenExecutor as error:
        raise ImageError(
            f"a process that decoded images of {folder} was killed, probably for lack of memory. "
            "Start again with more memory; images decoded so far are kept."
        ) from error
    return prepared


class KeptImages:
    """Grey images that are in the cache already, in any store; nothing is decoded.

    Args:
        size: Side of the images, pixels.
        bits: See `prepare`; images that were decoded with another value are not found.
    """

    def __init__(self, size: int, bits: int | None = None):
        self.size = size
        self.bits = bits
        self._opened: dict[Path, tuple[Mapping[str, Known], np.ndarray] | None] = {}

    def find(self, path: str) -> tuple[np.ndarray, Known] | None:
        """Find the cached pixels of a file.

        Args:
            path: The file, which may be in a subfolder of the images folder.

        Returns:
            Pixels, uint8 (size, size), and the journal's entry; None if the file has not been
            decoded, is unusable, or has changed since.
        """
        file = Path(os.path.abspath(path))  # noqa: PTH100 (must not resolve links: stores are keyed by folder)
        for folder in file.parents:
            if (kept := self._open(folder)) is None:
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
    """Check the number of unusable images.

    Args:
        prepared: Result of `prepare`.
        limit: Number or share of images that may be unusable, see `allowed`.
        where: Where the limit is set, the beginning of the message.

    Raises:
        ImageError: More images are unusable; counts them by status, and names the first five and
            the file that lists all.
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
        f"{where} allows {most} of {len(index)} images to be unusable; {len(bad)} of {len(index)} "
        f"are ({kinds}), first {first}. All are listed in {prepared.problems}. Replace their "
        "files, or set a higher limit."
    )


def _store(folder: Path, size: int, bits: int | None, channels: int = 1) -> Path:
    """Folder of the store for an images folder and a way of decoding."""
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
    """Files that are new or have changed since they were decoded, each once."""
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
    """See `Prepared.index`."""
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
    index: pd.DataFrame = pd.DataFrame(
        rows, columns=["image", "file", "status", "detail", "hash", "notes", "view", "row"]
    )
    usable = index[index["status"] == OK]
    again = usable[usable.duplicated("hash")]
    first = usable.drop_duplicates("hash").set_index("hash")["image"]
    index.loc[again.index, "detail"] = again["hash"].map(first)
    index.loc[again.index, ["status", "row"]] = (DUPLICATE, -1)
    del index["hash"]
    return index


def list_problems(prepared: Prepared) -> None:
    """Write `Prepared.problems`, the list of unusable images; remove it if there are none."""
    bad = prepared.index.loc[lambda of: of["status"] != OK, ["image", "file", "status", "detail"]]
    if bad.empty:
        prepared.problems.unlink(missing_ok=True)
        return
    with common_files.atomic_path(prepared.problems) as unfinished:
        bad.to_csv(unfinished, index=False, lineterminator="\n", errors="surrogateescape")


@dataclass(frozen=True, eq=False)
class Images:
    """Decoded images with their labels, of one site or several.

    Attributes:
        table: A row per image, with a RangeIndex: a label table, or only labels.
        pixels: uint8 (m, side, side), memory-mapped: all images of the store.
        rows: Row of `pixels` of each image, int64 (n,).
        site: Name of the site; "" for images of several sites.
        labelled: Classes that the site labels itself. Further class columns of the table come from
            the site file's `truth`.
    """

    table: pd.DataFrame
    pixels: np.ndarray
    rows: np.ndarray
    site: str = ""
    labelled: frozenset[str] = frozenset()

    def of(self, split: str) -> Images:
        """Select the images of a split, by the table's column `split`."""
        chosen = np.flatnonzero(self.table["split"] == split)
        table = self.table.iloc[chosen].reset_index(drop=True)
        return replace(self, table=table, rows=self.rows[chosen])

    def labels(self, classes: Sequence[str]) -> np.ndarray:
        """Labels of some classes, float64 (n, classes); NaN where there is no label.

        Args:
            classes: Names, in the order of the result; unknown ones get a column of NaN.
        """
        return self.table.reindex(columns=list(classes)).to_numpy(float)
