"""Image files to small grey squares."""

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path

import numpy as np
from PIL import Image

from cxr_study.data.images import dicom
from cxr_study.data.images.image_files import ImageError


def decode(path: Path, size: int) -> np.ndarray:
    """Decode one image file; see `decode_bytes`.

    Raises:
        ImageError: The file cannot be read or decoded.
    """
    try:
        return decode_bytes(Path(path).read_bytes(), size)
    except OSError as error:
        raise ImageError(f"{path} cannot be read: {error.strerror}.") from error
    except ImageError as error:
        raise ImageError(f"{path} cannot be decoded: {error}.") from error


def decode_bytes(data: bytes, size: int) -> np.ndarray:
    """Decode the bytes of one image file to a grey square.

    What the file is, its first bytes say and not its name. Colour is turned to grey by luma
    (ITU-R 601), transparency is ignored, 16-bit grey PNGs are scaled by their full range (65535
    becomes 255), and DICOM is shown as `dicom.grey` says. An image of another size is
    resized to the square with antialiasing and without regard to its aspect ratio, as in the
    papers.

    Args:
        data: A PNG, JPEG or DICOM file.
        size: Side of the square, pixels.

    Returns:
        uint8 array of shape (size, size).

    Raises:
        ImageError: The bytes cannot be decoded; says why, and not which file.
    """
    try:
        grey = Image.fromarray(dicom.grey(data)) if dicom.is_dicom(data) else _open(data, size)
        if grey.size != (size, size):
            grey = grey.resize((size, size), Image.Resampling.BILINEAR)
        return np.asarray(grey)
    except MemoryError:
        raise  # says nothing about the file
    except Exception as error:  # decoders raise nearly anything at corrupt bytes
        text = " ".join(str(error).split()) or type(error).__name__
        raise ImageError(text.rstrip(".")) from error


@contextmanager
def quiet() -> Iterator[None]:
    """Silence what Pillow and pydicom remark about files; enter it outside of all threads."""
    log = logging.getLogger("pydicom")
    level = log.level
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        log.setLevel(logging.CRITICAL)
        try:
            yield
        finally:
            log.setLevel(level)


def _open(data: bytes, size: int) -> Image.Image:
    if not data:
        raise ImageError("the file is empty")
    try:
        image = Image.open(BytesIO(data), formats=("PNG", "JPEG"))
    except Image.UnidentifiedImageError:
        raise ImageError("it is neither PNG, JPEG nor DICOM") from None
    image.draft("L", (2 * size, 2 * size))  # lets a large JPEG decode at reduced scale
    if image.mode.startswith("I"):
        scaled = np.rint(np.asarray(image, dtype=np.float64) / 257)
        return Image.fromarray(scaled.clip(0, 255).astype(np.uint8))
    return image.convert("L")
