"""Image files to small squares, grey or in colour, many of them in parallel."""

import hashlib
import logging
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from PIL import ExifTags, Image, ImageOps

from cxr_study.data.images import bit_depth, dicom
from cxr_study.data.images.image_files import ImageError, Source, file_stamp
from cxr_study.data.images.image_journal import (
    CONSTANT,
    OK,
    UNREADABLE,
    ImageJournal,
    Known,
)

MODES = {1: "L", 3: "RGB"}
"""Channels of the pixels -> mode of Pillow's images."""

_FORMATS = ("PNG", "JPEG", "TIFF", "JPEG2000", "WEBP", "BMP")
_CHUNK = 256  # files whose decoding a killed process loses
_DIM = 2  # bits fewer than a site's others: a quarter of the light


def decode_files(
    sources: Sequence[Source],
    journal: ImageJournal,
    progress: Callable[[int, int], None] | None = None,
    bits: int | None = None,
) -> dict[str, str]:
    """Decode files into a journal, chunk by chunk; the caller holds the store's lock.

    Args:
        sources: Images with a file.
        journal: Where they go.
        progress: Called as progress(done, total) after each file.
        bits: See `decode`.

    Returns:
        The files that could not be read, and why; the journal does not have them.
    """
    failures: dict[str, str] = {}
    done = 0
    backend = in_parallel([source.path for source in sources])
    with quiet(), Parallel(n_jobs=-1, prefer=backend, return_as="generator") as parallel:
        for start in range(0, len(sources), _CHUNK):
            chunk = sources[start : start + _CHUNK]
            entries = []
            work = parallel(
                delayed(_entry)(source.path, journal.size, journal.channels, bits)
                for source in chunk
            )
            for source, entry in zip(chunk, work, strict=True):
                if isinstance(entry, str):
                    failures[source.file] = entry
                else:
                    entries.append((source, *entry))
                done += 1
                if progress is not None:
                    progress(done, len(sources))
            journal.append(entries)
    return failures


@dataclass(frozen=True, eq=False)
class Decoded:
    """An image, decoded.

    Attributes:
        pixels: uint8, shape (size, size), or (size, size, 3) in colour.
        notes: What contradicts its being a radiograph of a chest, or what went wrong with its
            grey levels.
        view: What a DICOM file says, such as PA or LL; "" where nothing is said.
    """

    pixels: np.ndarray
    notes: tuple[str, ...] = ()
    view: str = ""


def decode(data: bytes, size: int, channels: int = 1, bits: int | None = None) -> Decoded:
    """Decode a PNG, JPEG, TIFF, JPEG 2000, WebP, BMP or DICOM file, told by its first bytes.

    With one channel, colour is turned to grey by luma (ITU-R 601); with three, images are red,
    green and blue, and those in grey have three equal channels. Transparency is ignored, values of
    more than 8 bits are scaled by their full range, TIFF whose white is 0 is inverted, what Exif
    says is turned or mirrored is turned back, DICOM is shown as `dicom.grey` says. Images are
    resized to the square with antialiasing, width first, whatever their aspect ratio, as in the
    papers.

    Args:
        data: The file.
        size: Side of the square, pixels.
        channels: 1 or 3.
        bits: Of 16, those that the values of a site's 16-bit pictures fill, 8 to 16. None: not
            known; all 16 are the range, and a picture that fills fewer is noted.

    Raises:
        ImageError: The bytes cannot be decoded; says why, and not which file.
    """
    try:
        if dicom.is_dicom(data):
            pixels, header = dicom.decode(data)
            shown = Image.fromarray(pixels).convert(MODES[channels])
            return Decoded(np.asarray(square(shown, size)), header.contradictions, header.view)
        image, box, notes = _open(data, size, MODES[channels], bits)
        return Decoded(np.asarray(square(image, size, box)), notes)
    except MemoryError:
        raise  # says nothing about the file
    except Exception as error:  # decoders raise nearly anything at corrupt bytes
        raise ImageError(dicom.text(error).rstrip(".")) from error


def square(
    image: Image.Image, size: int, box: tuple[float, float, float, float] | None = None
) -> Image.Image:
    """Resize an image to a square of `size` pixels with antialiasing, width first.

    Args:
        image: In grey, or in red, green and blue.
        size: Of the square.
        box: Left, top, right and bottom of the part to show, pixels. Default: all.
    """
    left, top, right, bottom = box or (0, 0, *image.size)
    # By itself, Pillow resizes the height first since version 13, where that shrinks more.
    if (image.width, left, right) != (size, 0, size):
        wide = (left, 0, right, image.height)
        image = image.resize((size, image.height), Image.Resampling.BILINEAR, wide)
    if (image.height, top, bottom) != (size, 0, size):
        image = image.resize((size, size), Image.Resampling.BILINEAR, (0, top, size, bottom))
    return image


def in_parallel(paths: Sequence[str]) -> str:
    """What decodes files fastest, as joblib's `prefer`."""
    # Decoders of compressed DICOM keep Python's lock; of PNG and JPEG they do not.
    return "processes" if paths and dicom.is_dicom_file(Path(paths[0])) else "threads"


@contextmanager
def quiet() -> Iterator[None]:
    """Silence Pillow's and pydicom's warnings; enter it outside of all threads."""
    log = logging.getLogger("pydicom")
    level = log.level
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        log.setLevel(logging.CRITICAL)
        try:
            yield
        finally:
            log.setLevel(level)


def _open(
    data: bytes, size: int, mode: str, bits: int | None
) -> tuple[Image.Image, tuple[float, float, float, float] | None, tuple[str, ...]]:
    """A picture but DICOM in a mode, the part of it that is the image, and what is odd about it."""
    if not data:
        raise ImageError("the file is empty")
    try:
        image = Image.open(BytesIO(data), formats=_FORMATS)
    except Image.UnidentifiedImageError:
        raise ImageError("no readable PNG, JPEG, TIFF, JPEG 2000, WebP, BMP or DICOM") from None
    pages = getattr(image, "n_frames", 1)
    if pages > 1 and image.format != "MPO":  # a camera's JPEG with previews
        raise ImageError(f"needs one picture; the {image.format} has {pages}")
    turned, notes = _turned(image)
    # A large JPEG decodes at reduced scale; the last pixels of a row may then lie beyond the image.
    reduced = image.draft(mode, image.size if turned else (2 * size, 2 * size))
    box = None if turned or reduced is None else reduced[1]
    if image.format == "TIFF" and image.mode in ("I", "F"):
        raise ImageError("needs 8 or 16 unsigned bits per pixel; the TIFF has signed or more")
    depth, tags = bit_depth.declared(image, data), image.getexif() if image.format == "TIFF" else {}
    if turned:
        ImageOps.exif_transpose(image, in_place=True)
    if depth != 16 and not image.mode.startswith("I"):
        return image.convert(mode), box, notes
    values = bit_depth.values_of(image, mode)
    if depth == 16:
        notes += _bits_noted(bit_depth.brightest(values).bit_length(), bits, image)
    full = (bits or 16) if depth == 16 or image.format != "TIFF" else depth
    scaled = np.rint(values / (2**full - 1) * 255).clip(0, 255)
    if tags.get(262) == 0 and image.mode.startswith("I"):  # white is 0, left so in 16 bits
        scaled = 255 - scaled
    return Image.fromarray(scaled.astype(np.uint8)).convert(mode), None, notes


def _turned(image: Image.Image) -> tuple[bool, tuple[str, ...]]:
    """Whether Exif says that a picture is stored turned or mirrored; a note where it is damaged."""
    try:
        return image.getexif().get(ExifTags.Base.Orientation, 1) in range(2, 9), ()
    except OSError:
        raise  # of the pixels: PNG has Exif behind them
    except Exception:
        return False, ("its Exif cannot be read",)


def _bits_noted(filled: int, bits: int | None, image: Image.Image) -> tuple[str, ...]:
    """What is odd about the bits that the values of a 16-bit picture fill."""
    text = f"{filled}-bit values in a 16-bit {image.format}"
    notes: tuple[str, ...] = ()
    if bits is None and 0 < filled < 16:
        notes = (f"{text}: too dark, unless 'bits' in the site file says what its pictures have",)
    elif bits is not None and (filled > bits or 0 < filled <= bits - _DIM):
        notes = (f"{text}, where the site's have {bits}",)
    if (bits or 16) < 16 and not image.mode.startswith("I"):
        notes += (f"the low 8 bits of a 16-bit {image.format} in {image.mode} are not read",)
    return notes


def _entry(
    path: str, size: int, channels: int, bits: int | None
) -> tuple[Known, np.ndarray | None] | str:
    """Decode one file: what is known of it, and its pixels; a text says why that failed for now."""
    try:
        stamp = file_stamp(path)
        data = Path(path).read_bytes()
    except OSError as error:
        return str(error.strerror)
    try:
        with quiet():  # for processes; threads are quiet already
            decoded = decode(data, size, channels, bits)
    except MemoryError:
        return "not enough memory"
    except ImageError as error:
        if isinstance(error.__cause__, dicom.MissingDecoderError):
            return str(error)  # and tried again, once it is installed
        return Known(stamp, UNREADABLE, str(error)), None
    pixels = decoded.pixels
    if (pixels == pixels[0, 0]).all():
        return Known(stamp, CONSTANT), None
    digest = hashlib.blake2b(pixels.tobytes(), digest_size=16).hexdigest()
    return Known(stamp, OK, "", digest, "; ".join(decoded.notes), decoded.view), pixels
