"""Decode many image files in parallel and keep what comes out."""

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path

from joblib import Parallel, delayed

from cxr_study.data.images import dicom
from cxr_study.data.images.decoding import decode_bytes, quiet
from cxr_study.data.images.image_files import ImageError
from cxr_study.data.images.image_journal import CONSTANT, OK, UNREADABLE, Entry, ImageJournal
from cxr_study.data.images.image_sources import Source, file_stamp

_CHUNK = 256  # files whose decoding a killed process loses


def decode_files(
    sources: Sequence[Source],
    journal: ImageJournal,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, str]:
    """Decode files into a journal, chunk by chunk; only for who may write to it.

    Args:
        sources: Images with a file.
        journal: Where they go.
        progress: Called as progress(done, total) after each file.

    Returns:
        The files that the system would not let be read, and why; the journal does not have them.

    Raises:
        OSError: The journal cannot be written.
    """
    failures: dict[str, str] = {}
    done = 0
    # Decoders of compressed DICOM keep Python's lock; of PNG and JPEG they do not.
    prefer = "processes" if sources and _is_dicom(sources[0].path) else "threads"
    with quiet(), Parallel(n_jobs=-1, prefer=prefer, return_as="generator") as parallel:
        for start in range(0, len(sources), _CHUNK):
            chunk = sources[start : start + _CHUNK]
            entries = []
            work = parallel(delayed(_entry)(source, journal.size) for source in chunk)
            for source, entry in zip(chunk, work, strict=True):
                if isinstance(entry, Entry):
                    entries.append(entry)
                else:
                    failures[source.file] = entry
                done += 1
                if progress is not None:
                    progress(done, len(sources))
            journal.append(entries)
    return failures


def _is_dicom(path: str) -> bool:
    try:
        with Path(path).open("rb") as file:
            return dicom.is_dicom(file.read(132))
    except OSError:
        return False


def _entry(source: Source, size: int) -> Entry | str:
    """Decode one file; a text says why that was not possible now, and may be later."""
    try:
        stamp = file_stamp(source.path)
        data = Path(source.path).read_bytes()
    except OSError as error:
        return str(error.strerror)
    known = (source.image, source.file, stamp)
    try:
        with quiet():  # for processes; threads are quiet already
            pixels = decode_bytes(data, size)
    except MemoryError:
        return "not enough memory"
    except ImageError as error:
        return Entry(*known, UNREADABLE, detail=str(error))
    if pixels.min() == pixels.max():
        return Entry(*known, CONSTANT)
    return Entry(
        *known,
        OK,
        hash=hashlib.blake2b(pixels.tobytes(), digest_size=16).hexdigest(),
        pixels=pixels,
    )
