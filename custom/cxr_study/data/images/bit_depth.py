"""How many of its 16 bits a picture's values fill: detectors give 10 to 16 of them."""

import warnings
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
from PIL import Image

LEAST = 16
"""Pictures of 16 bits that tell a site's bits; of fewer, nothing is decided."""

_DEEP = ("PNG", "TIFF", "JPEG2000")  # formats that have 16 bits
_LOOKED_AT = 256  # files of a site whose header is read
_SAMPLE = 32  # pictures of 16 bits among them whose values are counted
_BRIGHT = 0.995  # of a picture's pixels are no lighter: markers and burnt-in text may be


def declared(image: Image.Image, data: bytes) -> int:
    """Bits per value that a picture's header declares, from its first 4,096 bytes."""
    if image.format == "PNG":
        return data[24]
    if image.format == "TIFF":
        return int(np.max(image.getexif().get(258, 1)))  # BitsPerSample
    if image.format == "JPEG2000" and (start := data.find(b"\xff\x4f\xff\x51")) >= 0:
        return (data[start + 42] & 0x7F) + 1  # Ssiz of the codestream's SIZ
    return 8


def values_of(image: Image.Image, mode: str) -> np.ndarray:
    """Values of a 16-bit picture, uint16; with colour or alpha, Pillow keeps the high bytes."""
    if image.mode.startswith("I"):
        return np.asarray(image).astype(np.uint16)
    return np.asarray(image.convert(mode), np.uint16) * 257


def brightest(values: np.ndarray) -> int:
    """The highest value of a picture, but for its lightest pixels."""
    below = np.cumsum(np.bincount(values.ravel()))
    return int(np.searchsorted(below, _BRIGHT * below[-1]))


def decide(paths: Sequence[str]) -> int | None:
    """Bits of a site's 16-bit pictures, as a random sample of them tells; always the same.

    Those are the bits that the lightest pictures of the sample fill, the top 5 % left out. Where
    PNGs declare more significant bits (chunk sBIT) than that, their values are not scaled up to
    16 bits, as the format would have it, and sBIT is taken. Files that are no pictures are passed
    over: decoding names them.

    Returns:
        8 to 16; None where fewer than `LEAST` pictures of the sample have 16 bits.
    """
    tops: list[int] = []
    stated = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Pillow's
        for at in np.random.default_rng(0).permutation(len(paths))[:_LOOKED_AT]:
            with suppress(Exception), Image.open(paths[at], formats=_DEEP) as image:
                with Path(paths[at]).open("rb") as file:
                    head = file.read(4096)
                if len(tops) < _SAMPLE and declared(image, head) == 16:
                    tops.append(brightest(values_of(image, "L")))
                    stated = max(stated, head[head.find(b"sBIT") + 4] if b"sBIT" in head else 0)
    if len(tops) < LEAST:
        return None
    return max(int(np.percentile(tops, 95, method="higher")).bit_length(), stated, 8)
