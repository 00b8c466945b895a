"""Decode image files into small squares, grey or in colour, many of them in parallel."""

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
from PIL import ExifTags, Image, ImageOps, UnidentifiedImageError

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
"""Number of channels -> Pillow's mode."""

_FORMATS = ("PNG", "JPEG", "TIFF", "JPEG2000", "WEBP", "BMP")
_CHUNK = 256  # files per write to the journal: the most that a killed process loses
_DIM = 2  # bits fewer than the site's other images: a quarter of their brightness


def decode_files(
    sources: Sequence[Source],
    journal: ImageJournal,
    progress: Callable[[int, int], None] | None = None,
    bits: int | None = None,
) -> dict[str, str]:
    """Decode files in parallel and append them to a journal, chunk by chunk.

    The caller holds the store's lock. Undecodable files are entered into the journal as such.

    Args:
        sources: Images that have a file.
        journal: Where the pixels are stored.
        progress: Called as progress(done, total) after each file.
        bits: See `decode`.

    Returns:
        File -> reason, for files that could not be read this time (missing permission or decoder,
        no memory); the journal does not have them.
    """
    failures: dict[str, str] = {}
    done = 0
    backend = preferred_backend([source.path for source in sources])
    with silence_warnings(), Parallel(n_jobs=-1, prefer=backend, return_as="generator") as parallel:
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
    """A decoded image.

    Attributes:
        pixels: uint8, shape (size, size), or (size, size, 3) in colour.
        notes: Signs that it is not a chest radiograph, such as "modality CT", or that its grey
            levels are wrong.
        view: View position of a DICOM file, such as PA or LL; "" where it is not given.
    """

    pixels: np.ndarray
    notes: tuple[str, ...] = ()
    view: str = ""


def decode(data: bytes, size: int, channels: int = 1, bits: int | None = None) -> Decoded:
    """Decode a PNG, JPEG, TIFF, JPEG 2000, WebP, BMP or DICOM file, recognized by its first bytes.

    - Colour becomes grey by luma (ITU-R 601) with one channel; with three, the channels are red,
      green and blue, and equal for grey images. Transparency is ignored.
    - Values of more than 8 bits are scaled by their full range, see `bits`. TIFF with white as 0 is
      inverted. DICOM is windowed as described in `dicom.decode`.
    - Rotations and reflections in Exif are undone.
    - The image is resized to the square with antialiasing, width first, without keeping its aspect
      ratio, as in the papers.

    Args:
        data: Content of the file.
        size: Side of the square, pixels.
        channels: 1 or 3.
        bits: Number of bits, 8 to 16, that the values of the site's 16-bit images use; they are
            scaled by this range. None: unknown; the range is 16 bits, and images that use fewer
            get a note.

    Raises:
        ImageError: The bytes cannot be decoded; has the reason, but not the file.
        MemoryError: There is not enough memory.
    """
    try:
        if dicom.is_dicom(data):
            pixels, header = dicom.decode(data)
            shown = Image.fromarray(pixels).convert(MODES[channels])
            resized = np.asarray(resize_square(shown, size))
            return Decoded(resized, header.contradictions, header.view)
        image, box, notes = _open(data, size, MODES[channels], bits)
        return Decoded(np.asarray(resize_square(image, size, box)), notes)
    except MemoryError:
        raise  # not a fault of the file
    except Exception as error:  # decoders raise nearly anything at corrupt bytes
        raise ImageError(dicom.error_text(error).rstrip(".")) from error


def resize_square(
    image: Image.Image, size: int, box: tuple[float, float, float, float] | None = None
) -> Image.Image:
    """Resize an image to a square with antialiasing (Pillow's bilinear filter), width first.

    Args:
        image: In mode L or RGB.
        size: Side of the square, pixels.
        box: Left, top, right and bottom of the part to use, pixels. Default: the whole image.
    """
    left, top, right, bottom = box or (0, 0, *image.size)
    # Since version 13, Pillow itself would resize the height first where that shrinks more.
    if (image.width, left, right) != (size, 0, size):
        wide = (left, 0, right, image.height)
        image = image.resize((size, image.height), Image.Resampling.BILINEAR, wide)
    if (image.height, top, bottom) != (size, 0, size):
        image = image.resize((size, size), Image.Resampling.BILINEAR, (0, top, size, bottom))
    return image


def preferred_backend(paths: Sequence[str]) -> str:
    """The fastest backend to decode files, for joblib's `prefer`: "processes" or "threads".

    Decided by the first file: decoders of compressed DICOM hold Python's global lock, those of PNG
    and JPEG release it.
    """
    return "processes" if paths and dicom.is_dicom_file(Path(paths[0])) else "threads"


@contextmanager
def silence_warnings() -> Iterator[None]:
    """Silence warnings of Pillow and pydicom in a `with` block.

    Enter it before starting threads: Python's warning filters belong to the whole process.
    """
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
    """Open an image file other than DICOM.

    Returns:
        The image in Pillow's `mode`; the part of it that is the image (None: all); and notes.
    """
    if not data:
        raise ImageError("the file is empty")
    try:
        image = Image.open(BytesIO(data), formats=_FORMATS)
    except UnidentifiedImageError:
        raise ImageError("no readable PNG, JPEG, TIFF, JPEG 2000, WebP, BMP or DICOM") from None
    pages = getattr(image, "n_frames", 1)
    if pages > 1 and image.format != "MPO":  # a camera's JPEG with previews
        raise ImageError(f"needs one image; the {image.format} has {pages}")
    turned, notes = _turned(image)
    # A large JPEG is decoded at reduced scale; its last columns may then be beyond the image.
    reduced = image.draft(mode, image.size if turned else (2 * size, 2 * size))
    box = None if turned or reduced is None else reduced[1]
    if image.format == "TIFF" and image.mode in ("I", "F"):
        raise ImageError("needs 8 or 16 unsigned bits per pixel; the TIFF has signed or more")
    depth = bit_depth.declared_bits(image, data)
    tags = image.getexif() if image.format == "TIFF" else {}
    if turned:
        ImageOps.exif_transpose(image, in_place=True)
    if depth != 16 and not image.mode.startswith("I"):
        return image.convert(mode), box, notes
    values = bit_depth.read_values(image, mode)
    if depth == 16:
        notes += _bits_noted(bit_depth.brightest_value(values).bit_length(), bits, image)
    full = (bits or 16) if depth == 16 or image.format != "TIFF" else depth
    scaled = np.rint(values / (2**full - 1) * 255).clip(0, 255)
    if tags.get(262) == 0 and image.mode.startswith("I"):  # white is 0, left so in 16 bits
        scaled = 255 - scaled
    return Image.fromarray(scaled.astype(np.uint8)).convert(mode), None, notes


def _turned(image: Image.Image) -> tuple[bool, tuple[str, ...]]:
    """Whether an image is stored rotated or mirrored according to Exif; a note if Exif is bad."""
    try:
        return image.getexif().get(ExifTags.Base.Orientation, 1) in range(2, 9), ()
    except OSError:
        raise  # damaged pixels: in PNG, Exif comes after them
    except Exception:
        return False, ("its Exif cannot be read",)


def _bits_noted(filled: int, bits: int | None, image: Image.Image) -> tuple[str, ...]:
    """Notes about the number of bits that the values of a 16-bit image use.

    Args:
        filled: Bits of its brightest value.
        bits: See `decode`.
        image: As Pillow has opened it.
    """
    text = f"{filled}-bit values in a 16-bit {image.format}"
    notes: tuple[str, ...] = ()
    if bits is None and 0 < filled < 16:
        notes = (f"{text}: too dark, unless 'bits' in the site file gives the bits of its images",)
    elif bits is not None and (filled > bits or 0 < filled <= bits - _DIM):
        notes = (f"{text}, where the site's have {bits}",)
    if (bits or 16) < 16 and not image.mode.startswith("I"):
        notes += (f"the low 8 bits of a 16-bit {image.format} in {image.mode} are not read",)
    return notes


def _entry(
    path: str, size: int, channels: int, bits: int | None
) -> tuple[Known, np.ndarray | None] | str:
    """Decode one file.

    Returns:
        The entry for the journal, and the pixels (None unless OK); or, where the file could not be
        read for now, the reason.
    """
    try:
        stamp = file_stamp(path)
        data = Path(path).read_bytes()
    except OSError as error:
        return str(error.strerror)
    try:
        with silence_warnings():  # for processes; threads are quiet already
            decoded = decode(data, size, channels, bits)
    except MemoryError:
        return "not enough memory"
    except ImageError as error:
        if isinstance(error.__cause__, dicom.MissingDecoderError):
            return str(error)  # tried again in the next call
        return Known(stamp, UNREADABLE, str(error)), None
    pixels = decoded.pixels
    if (pixels == pixels[0, 0]).all():
        return Known(stamp, CONSTANT), None
    digest = hashlib.blake2b(pixels.tobytes(), digest_size=16).hexdigest()
    return Known(stamp, OK, "", digest, "; ".join(decoded.notes), decoded.view), pixels
