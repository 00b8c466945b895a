"""How many of 16 bits an image's values use: detectors deliver 10 to 16."""

import warnings
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
from PIL import Image

LEAST = 16
"""Smallest number of 16-bit images from which a site's bits are estimated."""

_DEEP = ("PNG", "TIFF", "JPEG2000")  # formats that have 16 bits
_FILES_READ = 256  # files of a site whose header is read
_SAMPLE = 32  # 16-bit images among them whose values are counted
_BRIGHT = 0.995  # quantile of an image's pixels; lighter ones may be markers or burnt-in text


def declared_bits(image: Image.Image, data: bytes) -> int:
    """Bits per value according to the header of an image file.

    Args:
        image: The image as Pillow has opened it.
        data: The first bytes of the file; 4,096 are enough.

    Returns:
        For PNG the bit depth of IHDR, for TIFF the largest BitsPerSample, for JPEG 2000 the
        precision in the SIZ marker (Ssiz); 8 for all other formats.
    """
    if image.format == "PNG":
        return data[24]
    if image.format == "TIFF":
        return int(np.max(image.getexif().get(258, 1)))  # BitsPerSample
    if image.format == "JPEG2000" and (start := data.find(b"\xff\x4f\xff\x51")) >= 0:
        return (data[start + 42] & 0x7F) + 1  # Ssiz of the codestream's SIZ
    return 8


def read_values(image: Image.Image, mode: str) -> np.ndarray:
    """Values of a 16-bit image, uint16 (height, width), or (height, width, 3) in mode RGB.

    Of images with colour or alpha Pillow keeps only the high bytes; they are scaled to 16 bits.

    Args:
        image: The image as Pillow has opened it.
        mode: "L" or "RGB", for images with colour or alpha.
    """
    if image.mode.startswith("I"):
        return np.asarray(image).astype(np.uint16)
    return np.asarray(image.convert(mode), np.uint16) * 257


def brightest_value(values: np.ndarray) -> int:
    """The 99.5 % quantile of an image's values: the highest one without markers and text."""
    below = np.cumsum(np.bincount(values.ravel()))
    return int(np.searchsorted(below, _BRIGHT * below[-1]))


def estimate_bits(paths: Sequence[str]) -> int | None:
    """Estimate the bits that the values of a site's 16-bit images use, from a random sample.

    The estimate is the number of bits of the brightest images of the sample, the top 5 % left out
    (see `brightest_value`). If PNGs declare more significant bits than that (chunk sBIT), this
    number is used: their values were not scaled up to 16 bits, as the format requires. The sample
    is the same in every call. Files that cannot be read are skipped; decoding reports them.

    Args:
        paths: All image files of the site.

    Returns:
        8 to 16; None if fewer than `LEAST` images of the sample have 16 bits.
    """
    tops: list[int] = []
    stated = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Pillow's
        for at in np.random.default_rng(0).permutation(len(paths))[:_FILES_READ]:
            with suppress(Exception), Image.open(paths[at], formats=_DEEP) as image:
                with Path(paths[at]).open("rb") as file:
                    head = file.read(4096)
                if len(tops) < _SAMPLE and declared_bits(image, head) == 16:
                    tops.append(brightest_value(read_values(image, "L")))
                    stated = max(stated, head[head.find(b"sBIT") + 4] if b"sBIT" in head else 0)
    if len(tops) < LEAST:
        return None
    return max(int(np.percentile(tops, 95, method="higher")).bit_length(), stated, 8)
