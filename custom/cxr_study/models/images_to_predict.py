"""Images to predict: found, read in chunks, and looked at for what is no frontal chest radiograph.

Such images are flagged, and predicted all the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from PIL import Image

from cxr_study.data.images import decoding, dicom
from cxr_study.data.images.image_files import SUFFIXES, ImageError, locate, walk
from cxr_study.data.images.image_journal import Known
from cxr_study.data.images.image_store import KeptImages
from surgical_aggregation.aggregation.feature_statistics import distances, fault, limits

COLUMNS = ("image", "path", "file", "image index", "imageid", "image_id", "dicom_id", "image_path")
"""Of a csv file, in lower case: the first of them that there is names the images."""

_MOST_COMPONENTS = 3  # of a path that identify an image: patient, study, file, as in CheXpert

CHUNK = 256  # images that are in memory at a time, and as many that are read ahead

WIDEST = 1.6
"""Longer side over the shorter one, of a radiograph's detector and with a margin."""

LEAST_CONTRAST = 20
"""Grey levels (of 256) between the 5th and the 95th percentile."""

FAR = "unlike the training sites' images"

_COLOURFUL = 16  # grey levels between the channels of a pixel, beyond what JPEG makes of grey


class FoundImage(NamedTuple):
    """An image to predict: its name in the table of predictions, and its file ("": there is none).

    Names are relative to the folder or csv file that was named; of a file that was named itself it
    is the path as given.
    """

    image: str
    path: str


def find(sources: Iterable[str | Path]) -> list[FoundImage]:
    """Find the images of files, folders and csv files.

    A folder's are all image files below it, sorted by path; DICOM files may have no suffix. A
    csv file names them in one of `COLUMNS`: by absolute paths, relative to its folder, or by the
    end of their paths wherever they lie below it.

    Raises:
        ValueError: A source does not exist, or has no image.
        ImageError: Two files could be an image that a csv file names.
    """
    found = []
    for source in map(Path, sources):
        if source.is_dir():
            images, needed = _of_folder(source), "an image file"
        elif not source.is_file():
            raise ValueError(
                f"an image, a folder or a csv file is needed; {source} does not exist."
            )
        elif source.suffix.lower() == ".csv":
            images, needed = _of_csv(source), "a row"
        else:
            images, needed = [FoundImage(str(source), str(source))], ""
        if not images:
            raise ValueError(f"{source} needs {needed}; there is none.")
        found += images
    return found


def _of_folder(folder: Path) -> list[FoundImage]:
    files = sorted(
        path
        for parent, names in walk(str(folder))
        for path in (Path(parent, name) for name in names if not name.startswith("."))
        if path.suffix[1:].lower() in SUFFIXES or (not path.suffix and dicom.is_dicom_file(path))
    )
    return [FoundImage(file.relative_to(folder).as_posix(), str(file)) for file in files]


def _of_csv(csv: Path) -> list[FoundImage]:
    table = pd.read_csv(csv, dtype=str, keep_default_na=False)
    spelt = {str(name).strip().lower(): name for name in reversed(table.columns)}
    column = next((spelt[name] for name in COLUMNS if name in spelt), None)
    if column is None:
        raise ValueError(
            f"{csv} needs a column named one of {', '.join(COLUMNS)}; has "
            f"{', '.join(map(str, table.columns))}."
        )
    names = table[column].str.strip().tolist()
    if blank := [row for row, name in enumerate(names, start=2) if not name]:
        raise ValueError(f"{csv}: line {blank[0]}: column {column} needs an image; it is blank.")
    components = min((name.count("/") + 1 for name in names), default=1)
    files = locate(csv.parent, names, min(components, _MOST_COMPONENTS))
    return [
        FoundImage(name, name if Path(name).is_absolute() and not file else str(file or ""))
        for name, file in zip(names, files, strict=True)
    ]


@dataclass(frozen=True, eq=False)
class ReadImage:
    """An image as it was read.

    Attributes:
        image: Its name.
        path: Its file.
        pixels: uint8 (size, size); None: it cannot be read.
        problem: Why not.
        flags: See `of_file` and `of_pixels`.
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
        found_in_file = of_file(path, size) + of_pixels(pixels)
        flags = tuple(dict.fromkeys([*notes, *found_in_file]))
    except ImageError as error:
        return ReadImage(*found, problem=str(error))
    except OSError as error:
        return ReadImage(*found, problem=str(error.strerror or error))
    return ReadImage(*found, pixels=pixels, flags=flags, bits=bits)


def of_file(path: Path, image_size: int) -> list[str]:
    """Look at a file's header, and at the colours of one that is not grey.

    Args:
        path: An image file that can be decoded.
        image_size: Side of the model's input; a smaller image has less detail than it was
            trained on.

    Returns:
        Flags, such as "view LL", "colour" or "small: 60 x 48 pixels".
    """
    if dicom.is_dicom_file(path):
        header = dicom.read_header(path)
        width, height = header.width, header.height
        flags = [*header.contradictions, *([] if header.is_frontal else [f"view {header.view}"])]
    else:
        with Image.open(path) as image:
            width, height = image.size
            flags = ["colour"] if _colourful(image) else []
    if min(width, height) < image_size:
        flags.append(f"small: {width} x {height} pixels")
    if max(width, height) > WIDEST * min(width, height):
        flags.append(f"shape: {width} x {height} pixels")
    return flags


def of_pixels(pixels: np.ndarray) -> list[str]:
    """Look at a decoded image, uint8 (side, side)."""
    if pixels.min() == pixels.max():
        return ["constant"]
    dark, light = np.percentile(pixels, (5, 95))
    return ["low contrast"] if light - dark < LEAST_CONTRAST else []


def far_away(features: np.ndarray, sites: Mapping[str, Mapping[str, Any]]) -> np.ndarray:
    """Which images are far from those of every training site.

    Args:
        features: What the head weighs, shape (images, features).
        sites: Site -> its statistics (see `feature_statistics`), as the model's manifest has them;
            of none, nothing is far. Unusable ones do not count, and too wide ones are narrowed.

    Returns:
        bool, shape (images,).
    """
    usable = {site: of for site, of in sites.items() if fault(of, features.shape[1]) is None}
    if not usable:
        return np.zeros(len(features), bool)
    beyond = [distances(features, usable[site]) > most for site, most in limits(usable).items()]
    return np.logical_and.reduce(beyond)


def _colourful(image: Image.Image) -> bool:
    if image.mode in ("1", "L", "LA", "F") or image.mode.startswith("I"):
        return False
    image.draft("RGB", (64, 64))  # a large JPEG decodes at reduced scale
    channels = np.asarray(image.convert("RGB").resize((64, 64)), np.int16)
    return bool(np.ptp(channels, axis=2).max() > _COLOURFUL)
