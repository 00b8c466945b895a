"""Find images to predict, read them in chunks, and flag those that may not be frontal radiographs.

Flagged images are predicted as well.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
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
"""Names of a csv file's column of images, in lower case; the first that exists is used."""

_MOST_COMPONENTS = 3  # of a path that identify an image: patient, study, file, as in CheXpert

CHUNK = 256
"""Images per chunk; one chunk is in use while the next is read."""

WIDEST = 1.6
"""Largest ratio of longer to shorter side that is not flagged: that of detectors, plus a margin."""

LEAST_CONTRAST = 20
"""Smallest distance of the 5th and the 95th percentile that is not flagged, grey levels of 256."""

FAR = "unlike the training sites' images"
"""Flag of an image whose features are far from those of every training site."""

_COLOURFUL = 16  # grey levels between a pixel's channels, more than JPEG artefacts of grey images


class FoundImage(NamedTuple):
    """An image to predict.

    Attributes:
        image: Its name in the table of predictions: relative to the folder, or as in the csv file,
            that contains it; the path as given for an image file. Of several sources, the name
            begins with the path of that folder, or of the csv file's.
        path: Its file; "": there is none.
    """

    image: str
    path: str


def find(sources: Iterable[str | Path]) -> list[FoundImage]:
    """Find the images of files, folders and csv files.

    Args:
        sources: Paths. An image file is one image. A folder stands for all image files below it,
            sorted by path; DICOM files may have no suffix. A csv file names images in one of
            `COLUMNS`, by absolute paths, by paths relative to its folder or, if there is no such
            file, by the last components of paths anywhere below its folder.

    Returns:
        The images in the order of the sources. An image of a csv file without a file is included,
        with the path "".

    Raises:
        ValueError: A source does not exist, or has no image.
        ImageError: Two files match an image of a csv file, or two of its images a file.
    """
    found = []
    paths = [*map(Path, sources)]
    for source in paths:
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
        if needed and len(paths) > 1:
            folder = source if source.is_dir() else source.parent
            images = [each._replace(image=str(folder / each.image)) for each in images]
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
    files = _locate(csv, dict.fromkeys(name.replace("\\", "/") for name in names))
    return [FoundImage(name, files[name.replace("\\", "/")]) for name in names]


def _locate(csv: Path, paths: Collection[str]) -> dict[str, str]:
    """Find the files of a csv's images; "" if there is none.

    Raises:
        ImageError: Two files match an image, or two images a file.
    """
    files = {path: str(csv.parent / path) for path in paths if (csv.parent / path).is_file()}
    elsewhere = [path for path in paths if path not in files]
    for number in range(1, _MOST_COMPONENTS + 1):
        some = [path for path in elsewhere if min(path.count("/") + 1, _MOST_COMPONENTS) == number]
        found = locate(csv.parent, some, number)
        files |= {path: str(file or "") for path, file in zip(some, found, strict=True)}
    image_of: dict[Path, str] = {}
    for path in (*elsewhere, *paths) if elsewhere else ():  # those that a search found come first
        file = Path(files[path]).resolve()
        if files[path] and image_of.setdefault(file, path) != path and image_of[file] in elsewhere:
            raise ImageError(
                f"{csv}: images '{image_of[file]}' and '{path}' need a file each; only {file} "
                "matches both. Correct the paths, or remove one of them."
            )
    return files


@dataclass(frozen=True, eq=False)
class ReadImage:
    """A decoded image.

    Attributes:
        image: Its name.
        path: Its file.
        pixels: Grey levels, uint8 (size, size); None: the image cannot be read.
        problem: Why it cannot be read; "": it can.
        flags: See `file_flags` and `pixel_flags`, after the decoder's own notes.
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
    """Decode images in chunks of `CHUNK`; the next chunk is read while one is in use.

    Images in the cache of a site's data are taken from there.

    Args:
        images: Any number; memory holds two chunks.
        size: Side of the decoded square, pixels.
        bits: Number of bits, of 16, that the values of a site's 16-bit images use, see
            `decoding.decode`. Default None: all 16; images that use fewer are flagged.

    Yields:
        The chunks, in the order of the images.
    """
    kept = KeptImages(size, bits)
    chunks = [images[start : start + CHUNK] for start in range(0, len(images), CHUNK)]
    with decoding.silence_warnings(), ThreadPoolExecutor(1) as ahead:
        coming: Future[list[ReadImage]] | None = None
        for chunk in chunks:
            after, coming = coming, ahead.submit(_chunk, chunk, size, kept)
            if after is not None:
                yield after.result()
        if coming is not None:
            yield coming.result()


def _chunk(images: Sequence[FoundImage], size: int, kept: KeptImages) -> list[ReadImage]:
    backend = decoding.preferred_backend([found.path for found in images])
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
            with decoding.silence_warnings():  # for processes; threads are quiet already
                decoded = decoding.decode(path.read_bytes(), size, bits=bits)
            pixels, notes = decoded.pixels, list(decoded.notes)
        else:
            pixels, notes = kept[0], kept[1].notes.split("; ") if kept[1].notes else []
        found_in_file = file_flags(path, size) + pixel_flags(pixels)
        flags = tuple(dict.fromkeys([*notes, *found_in_file]))
    except ImageError as error:
        return ReadImage(*found, problem=str(error))
    except OSError as error:
        return ReadImage(*found, problem=str(error.strerror or error))
    return ReadImage(*found, pixels=pixels, flags=flags, bits=bits)


def file_flags(path: Path, image_size: int) -> list[str]:
    """Check an image file's header, size and colours.

    Args:
        path: An image file that can be decoded.
        image_size: Side of the model's input, pixels. A smaller image has less detail than the
            training images.

    Returns:
        Flags, such as "view LL", "colour", "small: 60 x 48 pixels" or "shape: 200 x 40 pixels";
        contradictions in a DICOM header come first.
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


def pixel_flags(pixels: np.ndarray) -> list[str]:
    """Check the contrast of a decoded image.

    Args:
        pixels: uint8 (side, side).

    Returns:
        ["constant"], ["low contrast"] (see `LEAST_CONTRAST`) or [].
    """
    if pixels.min() == pixels.max():
        return ["constant"]
    dark, light = np.percentile(pixels, (5, 95))
    return ["low contrast"] if light - dark < LEAST_CONTRAST else []


def far_from_training(features: np.ndarray, sites: Mapping[str, Mapping[str, Any]]) -> np.ndarray:
    """Find the images whose features are far from those of every training site.

    Args:
        features: Inputs of the head, shape (images, features).
        sites: Site -> its feature statistics (see `feature_statistics`) from the model's manifest.
            Statistics that are not usable are ignored, and limits that are too wide are narrowed.

    Returns:
        bool, shape (images,); all False without usable statistics.
    """
    usable = {site: of for site, of in sites.items() if fault(of, features.shape[1]) is None}
    far = np.full(len(features), bool(usable))
    for site, limit in limits(usable).items():
        far &= distances(features, usable[site]) > limit
    return far


def _colourful(image: Image.Image) -> bool:
    """Whether an image has pixels whose channels differ by more than `_COLOURFUL`."""
    if image.mode in ("1", "L", "LA", "F") or image.mode.startswith("I"):
        return False
    image.draft("RGB", (64, 64))  # a large JPEG decodes at reduced scale
    channels = np.asarray(image.convert("RGB").resize((64, 64)), np.int16)
    return bool(np.ptp(channels, axis=2).max() > _COLOURFUL)
