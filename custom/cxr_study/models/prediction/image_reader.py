"""Chunks of images for the network: decoded, or taken from where they were decoded before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed

from cxr_study.data.images import decoding
from cxr_study.data.images.image_files import ImageError
from cxr_study.data.images.image_journal import Known
from cxr_study.data.images.image_store import KeptImages
from cxr_study.models.prediction import input_gate
from cxr_study.models.prediction.found_images import FoundImage

CHUNK = 256  # images that are in memory at a time, and as many that are read ahead


@dataclass(frozen=True, eq=False)
class ReadImage:
    """An image as it was read.

    Attributes:
        image: Its name.
        path: Its file.
        pixels: uint8 (size, size); None: it cannot be read.
        problem: Why not.
        flags: See `input_gate`.
        bits: See `read`.
    """

    image: str
    path: str
    pixels: np.ndarray | None = None
    problem: str = ""
    flags: tuple[str, ...] = ()
    bits: int | None = None


def read(
    images: Sequence[FoundImage], size: int, bits: int | None = None
) -> Iterator[list[ReadImage]]:
    """Read images in chunks, in their order; the next chunk is read while one is in use.

    Args:
        images: May be 100,000: memory holds two chunks.
        size: Side of the square that they become, pixels.
        bits: What the values of their site's 16-bit pictures fill, see `decoding.decode`.
    """
    kept = KeptImages(size, bits)
    chunks = [images[start : start + CHUNK] for start in range(0, len(images), CHUNK)]
    with decoding.quiet(), ThreadPoolExecutor(1) as ahead:
        coming: Future[list[ReadImage]] | None = None
        for chunk in chunks:
            after, coming = coming, ahead.submit(_chunk, chunk, size, kept)
            if after is not None:
                yield after.result()
        if coming is not None:
            yield coming.result()


def _chunk(images: Sequence[FoundImage], size: int, kept: KeptImages) -> list[ReadImage]:
    backend = decoding.in_parallel([found.path for found in images])
    work = (delayed(_read)(found, size, kept.bits, kept.find(found.path)) for found in images)
    return list(Parallel(n_jobs=-1, prefer=backend)(work))


def _read(
    found: FoundImage, size: int, bits: int | None, kept: tuple[np.ndarray, Known] | None
) -> ReadImage:
    if not found.path:
        return ReadImage(*found, problem="there is no such file")
    path = Path(found.path)
    try:
        if kept is None:
            with decoding.quiet():  # for processes; threads are quiet already
                decoded = decoding.decode(path.read_bytes(), size, bits=bits)
            pixels, notes = decoded.pixels, list(decoded.notes)
        else:
            pixels, notes = kept[0], kept[1].notes.split("; ") if kept[1].notes else []
        found_in_file = input_gate.of_file(path, size) + input_gate.of_pixels(pixels)
        flags = tuple(dict.fromkeys([*notes, *found_in_file]))
    except ImageError as error:
        return ReadImage(*found, problem=str(error))
    except OSError as error:
        return ReadImage(*found, problem=str(error.strerror or error))
    return ReadImage(*found, pixels=pixels, flags=flags, bits=bits)
